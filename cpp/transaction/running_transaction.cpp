#include "cpp/transaction/running_transaction.h"

#include <algorithm>
#include <utility>

#include "cpp/base/assert.h"
#include "cpp/transaction/transaction_preflight.h"

namespace ninfer {

namespace {

constexpr std::size_t kMostActivationCopies = 2;  // a tail and an image

// A refusal here would leave a state that nobody can explain: everything was checked before the first mutation.
template <typename T>
T must(Result<T, Refusal> done) {
    NINFER_ASSERT(done.has_value(), "the stores refuse a step of a checked plan");
    return std::move(done).value();
}

}  // namespace

Result<std::unique_ptr<RunningTransaction>, Refusal> RunningTransaction::start(ResourcePlan plan,
                                                                               const StateStores& stores,
                                                                               std::uint64_t revision) {
    const auto projection = preflight(plan, stores, revision);
    if (!projection) return projection.error();
    return std::unique_ptr<RunningTransaction>(new RunningTransaction(std::move(plan), stores, projection.value()));
}

RunningTransaction::RunningTransaction(ResourcePlan plan, const StateStores& stores,
                                       const ResourceProjection& projection)
    : plan_(std::move(plan)), stores_(stores), projection_(projection), peak_(projection.used.front()) {
    for (const Holding& holding : plan_.holdings()) {
        holdings_.emplace_back().holding = holding;
    }
    const ResourceSteps& steps = plan_.steps();
    copies_.reserve(std::max({steps.demoted_pages.size() + steps.demoted_images.size(), steps.restored_pages.size(),
                              kMostActivationCopies}));
}

RunningTransaction::~RunningTransaction() { NINFER_ASSERT(ended(), "a transaction is destroyed while it runs"); }

void RunningTransaction::watch(Probe probe, void* context) {
    probe_ = probe;
    probe_context_ = context;
}

void RunningTransaction::advance() {
    do step();
    while (!ended() && !waits_);
}

void RunningTransaction::step() {
    waits_ = false;
    if (cancelled_ && phase_ != TransactionPhase::kDraining && !ended()) abort(TransactionEnd::kCancelled);
    switch (phase_) {
        case TransactionPhase::kHostReleases:
            release();
            changed_ = plan_.steps().releases_anything();
            return move_to(TransactionPhase::kCopyPreparation);
        case TransactionPhase::kCopyPreparation:
            if (!prepare()) return;
            return move_to(copies_.empty() ? TransactionPhase::kCopyPublication : TransactionPhase::kCopiesInFlight);
        case TransactionPhase::kCopiesInFlight:
            return look();
        case TransactionPhase::kCopyPublication:
            if (publish()) end_round();
            return;
        case TransactionPhase::kDraining:
            return drain();
        case TransactionPhase::kCommitted:
        case TransactionPhase::kAborted:
            return;
    }
}

bool RunningTransaction::cancel() {
    if (ended() || phase_ == TransactionPhase::kDraining) return false;
    cancelled_ = true;
    return true;
}

// Less than projected is possible: copies that others cancelled may end meanwhile.
void RunningTransaction::move_to(TransactionPhase next) {
    NINFER_ASSERT(is_legal_move(phase_, next), "an illegal move of a transaction");
    phase_ = next;
    if (next == TransactionPhase::kDraining || next == TransactionPhase::kAborted) return;
    const ResourceAxes used = axes_of(stores_.copies->used());
    NINFER_ASSERT(used.fits(projection_.used_at(stage())), "a stage takes more than was projected");
}

ResourceStage RunningTransaction::stage() const noexcept {
    const auto of_round = [&](ResourceStage demotion, ResourceStage restore, ResourceStage activation) {
        if (round_ == CopyRound::kActivation) return activation;
        return round_ == CopyRound::kDemotion ? demotion : restore;
    };
    switch (phase_) {
        case TransactionPhase::kHostReleases:
            return ResourceStage::kNow;
        case TransactionPhase::kCopyPreparation:
            return of_round(ResourceStage::kReleased, ResourceStage::kDemoted, ResourceStage::kRestoring);
        case TransactionPhase::kCopiesInFlight:
        case TransactionPhase::kCopyPublication:
            return of_round(ResourceStage::kDemoting, ResourceStage::kRestoring, ResourceStage::kActivating);
        default:
            return ResourceStage::kCommitted;
    }
}

void RunningTransaction::note() {
    peak_ = larger_of(peak_, axes_of(stores_.copies->used()));
    if (probe_ != nullptr) probe_(probe_context_);
}

void RunningTransaction::did(Result<Nothing, Refusal> done) {
    must(done);
    note();
}

// --- releases -------------------------------------------------------------------------------------------------------

void RunningTransaction::release() {
    const ResourceSteps& steps = plan_.steps();
    for (const std::int32_t holding : steps.removed) release_holding(holding);
    for (const HoldingCut& cut : steps.shortened) shorten(cut);
    for (const PageId page : steps.host_page_drops) did(stores_.kv->drop(page, Tier::kHost));
    for (const PageId page : steps.device_page_drops) did(stores_.kv->drop(page, Tier::kDevice));
    for (const ImageId image : steps.host_image_drops) did(stores_.images->drop(image, Tier::kHost));
    for (const ImageId image : steps.device_image_drops) did(stores_.images->drop(image, Tier::kDevice));
}

void RunningTransaction::release_holding(std::int32_t index) {
    HoldingResult& result = holdings_[static_cast<std::size_t>(index)];
    did(stores_.kv->release(result.holding.kv));
    if (stores_.images != nullptr) did(stores_.images->release(result.holding.image));
    result.removed = true;
    result.holding = {};
}

// The shorter view is there before the longer one goes.
void RunningTransaction::shorten(const HoldingCut& cut) {
    Holding& holding = holdings_[static_cast<std::size_t>(cut.holding)].holding;
    const SpaceId shorter = must(stores_.kv->share(holding.kv, cut.frontier));
    note();
    did(stores_.kv->release(std::exchange(holding.kv, shorter)));
}

// --- rounds of copies -----------------------------------------------------------------------------------------------

// Whether all of the round has begun. The next three likewise go on where the last step has stopped.
bool RunningTransaction::prepare() {
    const ResourceSteps& steps = plan_.steps();
    switch (round_) {
        case CopyRound::kDemotion:
            return begin_copies(steps.demoted_pages, steps.demoted_images, Tier::kHost);
        case CopyRound::kRestore:
            return begin_copies(steps.restored_pages, {}, Tier::kDevice);
        case CopyRound::kActivation:
            prepare_kv();
            prepare_image();
            return true;
    }
    return true;
}

bool RunningTransaction::begin_copies(std::span<const PageId> pages, std::span<const ImageId> images,
                                      Tier destination) {
    const std::size_t all = pages.size() + images.size();
    const std::size_t end = std::min(all, copies_.size() + kCopiesPerStep);
    for (std::size_t i = copies_.size(); i < end; ++i)
        begin_copy(i < pages.size() ? stores_.copies->start_page(pages[i], destination)
                                    : stores_.copies->start_image(images[i - pages.size()], destination));
    return end == all;
}

void RunningTransaction::begin_copy(Result<CopyId, Refusal> copy) {
    copies_.push_back(must(copy));
    note();
}

// Only what leaves the source untouched.
void RunningTransaction::prepare_kv() {
    const ResourceNeed& need = plan_.need();
    if (projection_.kv == KvActivation::kOpen)
        kv_ = must(stores_.kv->open(projection_.reserved_pages));
    else if (projection_.kv == KvActivation::kFork)
        kv_ = must(stores_.kv->fork(source().holding.kv, need.frontier, projection_.reserved_pages));
    else
        return;
    note();
    if (projection_.copies_tail) begin_copy(stores_.copies->start_tail(kv_));
}

void RunningTransaction::prepare_image() {
    switch (projection_.image) {
        case ImageActivation::kNone:
        case ImageActivation::kMove:
            return;
        case ImageActivation::kOpen:
            image_ = must(stores_.images->open());
            return note();
        case ImageActivation::kFork:
            image_ = must(stores_.images->fork(source().holding.image));
            return note();
        case ImageActivation::kRestore:
            image_ = must(stores_.images->restore(source().holding.image));
            note();
            return begin_copy(stores_.copies->start_restore(image_));
    }
}

void RunningTransaction::look() {
    const std::size_t end = std::min(copies_.size(), looked_ + kCopiesPerStep);
    for (std::size_t i = looked_; i < end; ++i) {
        const CopyStatus status = must(stores_.copies->status(copies_[i]));
        if (status == CopyStatus::kFailed) {
            abort(TransactionEnd::kCopyFailed);
            return drain();
        }
        waits_ = waits_ || status == CopyStatus::kPending;
        if (!waits_) ++looked_;
    }
    if (looked_ == copies_.size()) move_to(TransactionPhase::kCopyPublication);
}

// Device replicas go when all of the round is published.
bool RunningTransaction::publish() {
    std::size_t left = kCopiesPerStep;
    for (; published_ < copies_.size() && left > 0; --left) {
        must(stores_.copies->publish(copies_[published_++]));
        changed_ = true;
        note();
    }
    if (published_ < copies_.size()) return false;
    if (round_ != CopyRound::kDemotion) return true;
    for (; left_device_ < copies_.size() && left > 0; --left) leave_device(left_device_++);
    return left_device_ == copies_.size();
}

void RunningTransaction::leave_device(std::size_t index) {
    const auto& pages = plan_.steps().demoted_pages;
    if (index < pages.size())
        did(stores_.kv->drop(pages[index], Tier::kDevice));
    else
        did(stores_.images->drop(plan_.steps().demoted_images[index - pages.size()], Tier::kDevice));
}

void RunningTransaction::end_round() {
    copies_.clear();
    looked_ = published_ = left_device_ = 0;
    if (round_ == CopyRound::kActivation) {
        commit();
        return move_to(TransactionPhase::kCommitted);
    }
    round_ = round_ == CopyRound::kDemotion ? CopyRound::kRestore : CopyRound::kActivation;
    move_to(TransactionPhase::kCopyPreparation);
}

// --- the end --------------------------------------------------------------------------------------------------------

void RunningTransaction::commit() {
    const bool consumes = plan_.need().kind == ResourceNeed::Kind::kSource && plan_.need().consumes;
    // A new sequence has its reservation and its slot, if nothing else.
    if (plan_.need().kind != ResourceNeed::Kind::kRoom) changed_ = true;
    if (consumes) {
        consume_kv();
        if (stores_.images != nullptr) consume_image();
        source().removed = true;
        source().holding = {};
    }
    for (const PageId page : plan_.steps().late_host_drops) did(stores_.kv->drop(page, Tier::kHost));
}

void RunningTransaction::consume_kv() {
    if (projection_.kv != KvActivation::kMove) return did(stores_.kv->release(source().holding.kv));
    kv_ = must(stores_.kv->consume(source().holding.kv, projection_.reserved_pages));
    note();
}

void RunningTransaction::consume_image() {
    if (projection_.image != ImageActivation::kMove) return did(stores_.images->release(source().holding.image));
    image_ = must(stores_.images->consume(source().holding.image));
    note();
}

void RunningTransaction::abort(TransactionEnd why) {
    end_ = why;
    copies_.erase(copies_.begin(), copies_.begin() + static_cast<std::ptrdiff_t>(std::exchange(published_, 0)));
    move_to(TransactionPhase::kDraining);
}

// A destination is given back only when the engine does not write it any more.
void RunningTransaction::drain() {
    const auto end = copies_.begin() + static_cast<std::ptrdiff_t>(std::min(copies_.size(), kCopiesPerStep));
    const auto kept = std::remove_if(copies_.begin(), end, [&](CopyId copy) {
        const bool pending = must(stores_.copies->status(copy)) == CopyStatus::kPending;
        waits_ = waits_ || pending;
        if (!pending) did(stores_.copies->cancel(copy));
        return !pending;
    });
    copies_.erase(kept, end);
    if (!copies_.empty()) return;
    if (kv_ != SpaceId{}) did(stores_.kv->release(std::exchange(kv_, SpaceId{})));
    if (image_ != ImageId{}) did(stores_.images->release(std::exchange(image_, ImageId{})));
    move_to(TransactionPhase::kAborted);
}

HoldingResult& RunningTransaction::source() { return holdings_[static_cast<std::size_t>(plan_.need().source)]; }

TransactionResult RunningTransaction::result() const {
    NINFER_ASSERT(ended(), "the result of a transaction that still runs");
    TransactionResult result{.end = end_,
                             .changed = changed_,
                             .holdings = holdings_,
                             .kv = kv_,
                             .image = image_,
                             .used = axes_of(stores_.copies->used()),
                             .peak = peak_};
    for (HoldingResult& holding : result.holdings) {
        if (holding.removed) continue;
        const SpaceFacts facts = must(stores_.kv->facts(holding.holding.kv));
        holding.frontier = facts.frontier;
        holding.placement = {
            .pages = facts.pages, .pages_on_device = facts.pages_on_device, .pages_on_host = facts.pages_on_host};
        if (stores_.images == nullptr) continue;
        const StateImage& image = *must(stores_.images->find(holding.holding.image));
        holding.placement.image_on_device = image.on_device();
        holding.placement.image_on_host = image.on_host();
    }
    return result;
}

}  // namespace ninfer
