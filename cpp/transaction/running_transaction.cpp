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
            prepare();
            return move_to(copies_.empty() ? TransactionPhase::kCopyPublication : TransactionPhase::kCopiesInFlight);
        case TransactionPhase::kCopiesInFlight:
            return look();
        case TransactionPhase::kCopyPublication:
            publish();
            return end_round();
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

void RunningTransaction::prepare() {
    const ResourceSteps& steps = plan_.steps();
    switch (round_) {
        case CopyRound::kDemotion:
            for (const PageId page : steps.demoted_pages) begin_copy(stores_.copies->start_page(page, Tier::kHost));
            for (const ImageId image : steps.demoted_images)
                begin_copy(stores_.copies->start_image(image, Tier::kHost));
            return;
        case CopyRound::kRestore:
            for (const PageId page : steps.restored_pages) begin_copy(stores_.copies->start_page(page, Tier::kDevice));
            return;
        case CopyRound::kActivation:
            prepare_kv();
            prepare_image();
            return;
    }
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
    bool pending = false;
    for (const CopyId copy : copies_) {
        const CopyStatus status = must(stores_.copies->status(copy));
        if (status == CopyStatus::kFailed) {
            abort(TransactionEnd::kCopyFailed);
            return drain();
        }
        pending = pending || status == CopyStatus::kPending;
    }
    waits_ = pending;
    if (!pending) move_to(TransactionPhase::kCopyPublication);
}

void RunningTransaction::publish() {
    for (const CopyId copy : copies_) {
        must(stores_.copies->publish(copy));
        changed_ = true;
        note();
    }
    copies_.clear();
    if (round_ != CopyRound::kDemotion) return;
    for (const PageId page : plan_.steps().demoted_pages) did(stores_.kv->drop(page, Tier::kDevice));
    for (const ImageId image : plan_.steps().demoted_images) did(stores_.images->drop(image, Tier::kDevice));
}

void RunningTransaction::end_round() {
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
    move_to(TransactionPhase::kDraining);
}

// A destination is given back only when the engine does not write it any more.
void RunningTransaction::drain() {
    std::erase_if(copies_, [&](CopyId copy) {
        if (must(stores_.copies->status(copy)) == CopyStatus::kPending) return false;
        did(stores_.copies->cancel(copy));
        return true;
    });
    waits_ = !copies_.empty();
    if (waits_) return;
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
