#include "cpp/transaction/target_domain.h"

#include <algorithm>

#include "cpp/base/assert.h"

namespace ninfer {

namespace {

constexpr std::int32_t kUnknown = -1;

// The entry of a sparse map from small indices, which is made longer where needed.
std::int32_t& entry(std::vector<std::int32_t>& map, std::size_t index) {
    if (index >= map.size()) map.resize(index + 1, kUnknown);
    return map[index];
}

}  // namespace

std::optional<Refusal> refusal_of(const Holding& holding, const StateStores& stores) {
    NINFER_ASSERT_EQ(holding.image != ImageId{}, stores.images != nullptr);
    const auto space = stores.kv->find(holding.kv);
    if (!space) return space.error();
    if (space.value()->active) return Refusal{RefusalKind::kActive, 0, 1};
    if (stores.images == nullptr) return std::nullopt;
    const auto image = stores.images->find(holding.image);
    if (!image) return image.error();
    if (image.value()->active) return Refusal{RefusalKind::kActive, 0, 1};
    return std::nullopt;
}

Result<Nothing, Refusal> TargetDomain::read(std::span<const Holding> holdings, std::uint64_t revision) {
    clear();
    for (const Holding& holding : holdings)
        if (const auto refusal = refusal_of(holding, stores_)) return *refusal;
    for (const Holding& holding : holdings) {
        DomainHolding& added = holdings_.emplace_back();
        added.holding = holding;
        added.frontier = stores_.kv->find(holding.kv).value()->frontier;
        add_chain(added);
        if (stores_.images != nullptr) added.image = add_image(holding.image);
    }
    for (DomainRun& run : runs_) {
        run.outside_frozen -= run.holdings;
        NINFER_ASSERT_LE(0, run.outside_frozen);
    }
    for (DomainImage& image : images_) {
        image.outside -= image.holdings;
        NINFER_ASSERT_LE(0, image.outside);
    }
    revision_ = revision;
    used_ = axes_of(stores_.copies->used());
    capacity_ = axes_of(stores_.copies->capacity());
    return Nothing{};
}

void TargetDomain::clear() {
    holdings_.clear();
    runs_.clear();
    segments_.clear();
    images_.clear();
    links_.clear();
    std::fill(local_run_.begin(), local_run_.end(), kUnknown);
    std::fill(local_image_.begin(), local_image_.end(), kUnknown);
}

void TargetDomain::add_chain(DomainHolding& holding) {
    holding.first_link = static_cast<std::int32_t>(links_.size());
    stores_.kv->for_each_run(holding.holding.kv, [&](const RunFacts& facts) {
        std::int32_t& known = entry(local_run_, static_cast<std::size_t>(facts.run.value));
        if (known == kUnknown) known = add_run(facts);
        ++runs_[static_cast<std::size_t>(known)].holdings;
        links_.push_back(known);
        holding.pages += facts.pages;
    });
    holding.links = static_cast<std::int32_t>(links_.size()) - holding.first_link;
}

std::int32_t TargetDomain::add_run(const RunFacts& facts) {
    DomainRun run;
    run.id = facts.run;
    run.first_page = facts.first_page;
    run.pages = facts.pages;
    // Less the holdings of the domain, once they are all there.
    run.outside_frozen = facts.holders - facts.counts.readers;
    run.readers = facts.counts.readers;
    run.pins = facts.counts.pins;
    add_segments(run, facts.counts);
    runs_.push_back(run);
    return static_cast<std::int32_t>(runs_.size()) - 1;
}

void TargetDomain::add_segments(DomainRun& run, const PageRunData& counts) {
    run.first_segment = static_cast<std::int32_t>(segments_.size());
    const bool uniform_on_device = counts.on_device == 0 || counts.on_device == run.pages;
    const bool uniform_on_host = counts.on_host == 0 || counts.on_host == run.pages;
    if (uniform_on_device && uniform_on_host) {
        if (run.pages > 0) segments_.push_back({0, run.pages, counts.on_device > 0, counts.on_host > 0});
    } else {
        std::int64_t index = 0;
        stores_.kv->for_each_page_of(run.id, [&](PageId, const LogicalPage& page) {
            const bool first = static_cast<std::int32_t>(segments_.size()) == run.first_segment;
            if (first || segments_.back().on_device != page.on_device() || segments_.back().on_host != page.on_host())
                segments_.push_back({index, index, page.on_device(), page.on_host()});
            segments_.back().end = ++index;
        });
    }
    run.segments = static_cast<std::int32_t>(segments_.size()) - run.first_segment;
}

std::int32_t TargetDomain::add_image(ImageId id) {
    std::int32_t& known = entry(local_image_, id.slot());
    if (known == kUnknown) {
        const StateImage& image = *stores_.images->find(id).value();
        known = static_cast<std::int32_t>(images_.size());
        // Less the holdings of the domain, once they are all there.
        images_.push_back({.id = id,
                           .holdings = 0,
                           .outside = image.references,
                           .pins = image.pins,
                           .on_device = image.on_device(),
                           .on_host = image.on_host()});
    }
    ++images_[static_cast<std::size_t>(known)].holdings;
    return known;
}

std::span<const std::int32_t> TargetDomain::chain(const DomainHolding& holding) const {
    return std::span(links_).subspan(static_cast<std::size_t>(holding.first_link),
                                     static_cast<std::size_t>(holding.links));
}

std::span<const DomainSegment> TargetDomain::segments(const DomainRun& run) const {
    return std::span(segments_).subspan(static_cast<std::size_t>(run.first_segment),
                                        static_cast<std::size_t>(run.segments));
}

HoldingOutcome TargetDomain::identity_of(std::int32_t holding) const {
    const DomainHolding& found = holdings_[static_cast<std::size_t>(holding)];
    return {.frontier = found.frontier, .device_pages = static_cast<std::int32_t>(found.pages)};
}

std::vector<HoldingOutcome> TargetDomain::identity() const {
    std::vector<HoldingOutcome> outcomes;
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(holdings_.size()); ++i) outcomes.push_back(identity_of(i));
    return outcomes;
}

std::int64_t TargetDomain::blocks_per_image() const noexcept {
    return stores_.images == nullptr ? 0 : stores_.images->blocks_per_image();
}

}  // namespace ninfer
