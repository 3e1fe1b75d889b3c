#include "cpp/transaction/resource_projection.h"

#include <algorithm>

#include "cpp/base/assert.h"
#include "cpp/state/page_count.h"

namespace ninfer {

namespace {

std::int64_t overlap(const PageRange& left, const PageRange& right) {
    return std::max<std::int64_t>(0, std::min(left.end, right.end) - std::max(left.begin, right.begin));
}

// Of a space's first `pages` pages, how many are in this run.
std::int64_t in_run(const DomainRun& run, std::int64_t pages) {
    return std::clamp<std::int64_t>(pages - run.first_page, 0, run.pages);
}

void raise(std::int64_t& value, std::int64_t to) { value = std::max(value, to); }

}  // namespace

bool SegmentChange::none() const noexcept {
    return gone.size() + drop_host.size() + drop_device.size() + demote.size() + restore.size() +
               gone_at_commit.size() + drop_host_at_commit.size() ==
           0;
}

ResourceProjection ResourceProjector::project(std::span<const HoldingOutcome> outcomes, const ResourceNeed& need) {
    check_target(*domain_, outcomes, need);
    outcomes_ = outcomes;
    need_ = need;
    collect_wants();
    // First what each stage changes, then the sums.
    ResourceProjection projection;
    projection.used[0] = domain_->used();
    projection.removed = std::ranges::count(outcomes, false, &HoldingOutcome::survives) + (consumes() ? 1 : 0);
    add_segments(projection);
    add_images(projection);
    add_activation(projection);
    for (std::size_t i = 1; i < projection.used.size(); ++i) projection.used[i] += projection.used[i - 1];
    projection.peak = projection.used.back() + need.room;
    for (const ResourceAxes& used : projection.used) projection.peak = larger_of(projection.peak, used);
    projection.residual = excess_over(projection.peak, domain_->capacity());
    return projection;
}

void ResourceProjector::collect_wants() {
    run_wants_.assign(domain_->runs().size(), {});
    image_wants_.assign(domain_->images().size(), {});
    kv_ = need_.kind == ResourceNeed::Kind::kRoot ? KvActivation::kOpen : KvActivation::kNone;
    image_ = need_.kind == ResourceNeed::Kind::kRoot && domain_->stores().images != nullptr ? ImageActivation::kOpen
                                                                                            : ImageActivation::kNone;
    want_outside();
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(outcomes_.size()); ++i)
        if (i != need_.source && outcomes_[static_cast<std::size_t>(i)].survives) want_holding(i);
    if (need_.kind == ResourceNeed::Kind::kSource) want_source();
}

// Outside, everybody keeps what is there; active spaces do not care for Host.
void ResourceProjector::want_outside() {
    for (std::size_t i = 0; i < run_wants_.size(); ++i) {
        const DomainRun& run = domain_->runs()[i];
        if (run.outside_frozen + run.readers == 0) continue;
        RunWants& wants = run_wants_[i];
        wants.kept = wants.kept_after = wants.on_device = run.pages;
        wants.on_host = run.outside_frozen > 0 ? run.pages : 0;
    }
    for (std::size_t i = 0; i < image_wants_.size(); ++i) {
        const DomainImage& image = domain_->images()[i];
        image_wants_[i].holders = image.outside;
        image_wants_[i].on_device = image_wants_[i].on_host = image.outside > 0;
    }
}

void ResourceProjector::want_holding(std::int32_t index) {
    const DomainHolding& holding = domain_->holdings()[static_cast<std::size_t>(index)];
    const HoldingOutcome& outcome = outcomes_[static_cast<std::size_t>(index)];
    const std::int64_t pages = pages_of(outcome.frontier);
    const std::int64_t on_device = std::min<std::int64_t>(pages, outcome.device_pages);
    for (const std::int32_t link : domain_->chain(holding)) {
        const DomainRun& run = domain_->runs()[static_cast<std::size_t>(link)];
        RunWants& wants = run_wants_[static_cast<std::size_t>(link)];
        raise(wants.kept, in_run(run, pages));
        raise(wants.kept_after, in_run(run, pages));
        raise(wants.on_device, in_run(run, on_device));
        if (!outcome.drops_host) raise(wants.on_host, in_run(run, pages));
    }
    if (holding.image == DomainHolding::kNoImage) return;
    ImageWants& image = image_wants_[static_cast<std::size_t>(holding.image)];
    ++image.holders;
    image.on_device = image.on_device || outcome.image != ImageOutcome::kHostOnly;
    image.on_host = image.on_host || outcome.image != ImageOutcome::kDeviceOnly;
}

// Called when all others have said what they want: what nobody else has is continued in place.
void ResourceProjector::want_source() {
    const DomainHolding& source = domain_->holdings()[static_cast<std::size_t>(need_.source)];
    const HoldingOutcome& outcome = outcomes_[static_cast<std::size_t>(need_.source)];
    const bool whole = need_.frontier == source.frontier;
    const bool unaligned = !is_aligned(need_.frontier);
    const bool moves = consumes() && whole && !(unaligned && tail_is_shared(source));
    kv_ = moves ? KvActivation::kMove : KvActivation::kFork;
    std::int64_t kept_after = source.pages;
    if (consumes() && !moves) kept_after = need_.frontier / kPageTokens;
    const std::int64_t needed = pages_of(need_.frontier);
    for (const std::int32_t link : domain_->chain(source)) {
        const DomainRun& run = domain_->runs()[static_cast<std::size_t>(link)];
        RunWants& wants = run_wants_[static_cast<std::size_t>(link)];
        wants.kept = wants.on_device = run.pages;
        raise(wants.kept_after, in_run(run, kept_after));
        if (!outcome.drops_host) wants.on_host = run.pages;
        wants.needed = in_run(run, needed);
        if (moves && unaligned && link == domain_->chain(source).front()) wants.tail = run.pages - 1;
    }
    if (source.image == DomainHolding::kNoImage) return;
    ImageWants& image = image_wants_[static_cast<std::size_t>(source.image)];
    const bool is_last = consumes() && image.holders == 0;
    if (!domain_->images()[static_cast<std::size_t>(source.image)].on_device)
        image_ = ImageActivation::kRestore;
    else
        image_ = is_last ? ImageActivation::kMove : ImageActivation::kFork;
    image.last_of_source = is_last;
    image.is_source = true;
    ++image.holders;
    image.on_device = true;
    image.on_host = image.on_host || outcome.image != ImageOutcome::kDeviceOnly;
}

bool ResourceProjector::tail_is_shared(const DomainHolding& source) const {
    const std::int32_t last = domain_->chain(source).front();
    return run_wants_[static_cast<std::size_t>(last)].kept == domain_->runs()[static_cast<std::size_t>(last)].pages;
}

SegmentChange ResourceProjector::change_of(const RunWants& wants, const DomainSegment& segment) const {
    const std::int64_t kept = std::clamp(wants.kept, segment.begin, segment.end);
    const std::int64_t on_device = std::clamp(wants.on_device, segment.begin, kept);
    const std::int64_t on_host = std::clamp(wants.on_host, segment.begin, kept);
    const std::int64_t kept_after = std::clamp(wants.kept_after, segment.begin, kept);
    const std::int64_t needed = std::clamp(wants.needed, segment.begin, kept);
    // The Host replica of a page that will be written in place goes with the Move.
    const auto without_tail = [&](std::int64_t begin, std::int64_t end) {
        if (wants.tail >= 0) end = std::min(end, wants.tail);
        return PageRange{begin, std::max(begin, end)};
    };
    SegmentChange change;
    change.gone = {kept, segment.end};
    change.gone_at_commit = {kept_after, kept};
    if (segment.on_device && segment.on_host) {
        change.drop_device = {on_device, kept};
        change.drop_host = without_tail(std::min(on_host, on_device), on_device);
    } else if (segment.on_device) {
        change.demote = {on_device, kept};
    } else {
        change.restore = {segment.begin, needed};
        change.drop_host_at_commit = without_tail(on_host, std::max(on_host, std::min(needed, kept_after)));
    }
    return change;
}

ImageChange ResourceProjector::change_of(std::size_t index) const {
    const DomainImage& image = domain_->images()[index];
    const ImageWants& wants = image_wants_[index];
    ImageChange change;
    if (wants.holders == 0) {
        change.gone = true;
    } else if (image.on_device && image.on_host) {
        change.drop_device = !wants.on_device;
        change.drop_host = !wants.on_host;
    } else {
        change.demote = image.on_device && !wants.on_device;
    }
    change.gone_at_commit = wants.last_of_source && image_ == ImageActivation::kRestore;
    return change;
}

void ResourceProjector::add_segments(ResourceProjection& projection) const {
    const std::int64_t blocks = domain_->blocks_per_page();
    std::int64_t demoted = 0;
    std::int64_t restored = 0;
    for (std::size_t i = 0; i < run_wants_.size(); ++i) {
        const DomainRun& run = domain_->runs()[i];
        const RunWants& wants = run_wants_[i];
        if (wants.all_as_it_is(run.pages)) continue;
        bool changes = wants.tail >= 0;
        for (const DomainSegment& segment : domain_->segments(run)) {
            const SegmentChange change = change_of(wants, segment);
            const bool written_in_place = wants.tail >= segment.begin && wants.tail < segment.end;
            if (written_in_place && segment.on_host)
                projection.used_at(ResourceStage::kCommitted).host_blocks -= blocks;
            if (change.none()) continue;
            changes = true;
            demoted += change.demote.size();
            restored += change.restore.size();
            add_segment(projection, segment, change);
        }
        if (changes) projection.pins += run.pins;
    }
    const auto page_bytes = static_cast<std::int64_t>(domain_->stores().kv->device().page_bytes());
    projection.to_host += {demoted, demoted * page_bytes};
    projection.to_device += {restored, restored * page_bytes};
}

void ResourceProjector::add_segment(ResourceProjection& projection, const DomainSegment& segment,
                                    const SegmentChange& change) const {
    const std::int64_t blocks = domain_->blocks_per_page();
    const std::int64_t gone_on_device = segment.on_device ? change.gone.size() : 0;
    const std::int64_t gone_on_host = segment.on_host ? change.gone.size() : 0;
    ResourceAxes& released = projection.used_at(ResourceStage::kReleased);
    released.device_pages -= gone_on_device + change.drop_device.size();
    released.host_blocks -= blocks * (gone_on_host + change.drop_host.size());
    projection.used_at(ResourceStage::kDemoting).host_blocks += blocks * change.demote.size();
    projection.used_at(ResourceStage::kDemoted).device_pages -= change.demote.size();
    projection.used_at(ResourceStage::kRestoring).device_pages += change.restore.size();
    const PageRange& late = change.gone_at_commit;
    ResourceAxes& committed = projection.used_at(ResourceStage::kCommitted);
    committed.device_pages -= segment.on_device
                                  ? late.size() - overlap(late, change.drop_device) - overlap(late, change.demote)
                                  : overlap(late, change.restore);
    committed.host_blocks -=
        blocks * (segment.on_host ? late.size() - overlap(late, change.drop_host) : overlap(late, change.demote));
    committed.host_blocks -= blocks * change.drop_host_at_commit.size();
}

void ResourceProjector::add_images(ResourceProjection& projection) const {
    const std::int64_t blocks = domain_->blocks_per_image();
    for (std::size_t i = 0; i < image_wants_.size(); ++i) {
        const DomainImage& image = domain_->images()[i];
        const ImageChange change = change_of(i);
        if (!change.none()) projection.pins += image.pins;
        ResourceAxes& released = projection.used_at(ResourceStage::kReleased);
        if (change.drop_device || (change.gone && image.on_device)) --released.image_slots_checkpoint;
        if (change.drop_host || (change.gone && image.on_host)) released.host_blocks -= blocks;
        if (change.demote) {
            projection.used_at(ResourceStage::kDemoting).host_blocks += blocks;
            --projection.used_at(ResourceStage::kDemoted).image_slots_checkpoint;
            projection.to_host += {1, image_bytes()};
        }
        if (change.gone_at_commit) projection.used_at(ResourceStage::kCommitted).host_blocks -= blocks;
        if (image_ == ImageActivation::kMove && image_wants_[i].is_source) {
            projection.pins += image.pins;
            --projection.used_at(ResourceStage::kCommitted).image_slots_checkpoint;
            if (image.on_host && !change.drop_host) projection.used_at(ResourceStage::kCommitted).host_blocks -= blocks;
        }
    }
}

void ResourceProjector::add_activation(ResourceProjection& projection) const {
    projection.kv = kv_;
    projection.image = image_;
    const std::int64_t full = need_.frontier / kPageTokens;
    ResourceAxes& activating = projection.used_at(ResourceStage::kActivating);
    ResourceAxes& committed = projection.used_at(ResourceStage::kCommitted);
    switch (kv_) {
        case KvActivation::kNone:
            break;
        case KvActivation::kOpen:
            projection.reserved_pages = need_.pages;
            break;
        case KvActivation::kFork:
            projection.reserved_pages = need_.pages - full;
            break;
        case KvActivation::kMove:
            projection.reserved_pages = need_.pages - pages_of(need_.frontier);
            break;
    }
    (kv_ == KvActivation::kMove ? committed : activating).device_pages += projection.reserved_pages;
    projection.copies_tail = kv_ == KvActivation::kFork && !is_aligned(need_.frontier);
    if (projection.copies_tail)
        projection.within_device += {1, static_cast<std::int64_t>(domain_->stores().kv->device().page_bytes())};
    if (image_ == ImageActivation::kRestore) projection.to_device += {1, image_bytes()};
    if (image_ != ImageActivation::kNone)
        ++(image_ == ImageActivation::kMove ? committed : activating).image_slots_active;
}

std::int64_t ResourceProjector::image_bytes() const {
    return static_cast<std::int64_t>(domain_->stores().images->size().image_bytes);
}

HoldingPlacement ResourceProjector::placement(std::int32_t index) const {
    const DomainHolding& holding = domain_->holdings()[static_cast<std::size_t>(index)];
    const HoldingOutcome& outcome = outcomes_[static_cast<std::size_t>(index)];
    HoldingPlacement placement;
    if (!outcome.survives || (consumes() && index == need_.source)) return placement;
    placement.pages = pages_of(outcome.frontier);
    for (const std::int32_t link : domain_->chain(holding)) {
        const DomainRun& run = domain_->runs()[static_cast<std::size_t>(link)];
        const std::int64_t seen = in_run(run, placement.pages);
        for (const DomainSegment& segment : domain_->segments(run)) {
            const SegmentChange change = change_of(run_wants_[static_cast<std::size_t>(link)], segment);
            const PageRange pages{segment.begin, std::max(segment.begin, std::min(segment.end, seen))};
            placement.pages_on_device +=
                segment.on_device ? pages.size() - overlap(pages, change.drop_device) - overlap(pages, change.demote)
                                  : overlap(pages, change.restore);
            placement.pages_on_host += segment.on_host ? pages.size() - overlap(pages, change.drop_host) -
                                                             overlap(pages, change.drop_host_at_commit)
                                                       : overlap(pages, change.demote);
        }
    }
    if (holding.image == DomainHolding::kNoImage) return placement;
    const DomainImage& image = domain_->images()[static_cast<std::size_t>(holding.image)];
    const ImageChange change = change_of(static_cast<std::size_t>(holding.image));
    placement.image_on_device = image.on_device && !change.drop_device && !change.demote;
    placement.image_on_host = (image.on_host && !change.drop_host) || change.demote;
    return placement;
}

void ResourceProjector::for_each_segment_change(FunctionRef<void(const DomainRun&, const SegmentChange&)> visit) const {
    for (std::size_t i = 0; i < run_wants_.size(); ++i) {
        const DomainRun& run = domain_->runs()[i];
        if (run_wants_[i].all_as_it_is(run.pages)) continue;
        for (const DomainSegment& segment : domain_->segments(run))
            if (const SegmentChange change = change_of(run_wants_[i], segment); !change.none()) visit(run, change);
    }
}

void ResourceProjector::for_each_image_change(FunctionRef<void(const DomainImage&, const ImageChange&)> visit) const {
    for (std::size_t i = 0; i < image_wants_.size(); ++i)
        if (const ImageChange change = change_of(i); !change.none()) visit(domain_->images()[i], change);
}

}  // namespace ninfer
