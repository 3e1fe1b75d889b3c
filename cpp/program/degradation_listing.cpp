#include "cpp/program/degradation_listing.h"

#include <algorithm>

#include "cpp/state/page_count.h"

namespace ninfer {

namespace {

class DegradationListing {
   public:
    DegradationListing(const PlanningDomain& domain, std::span<const HoldingOutcome> outcomes,
                       const MembersOfOption& members, const ResourceAxes& residual,
                       std::vector<Degradation>& degradations)
        : domain_(domain),
          outcomes_(outcomes),
          fixed_(members.fixed),
          source_(members.source),
          tail_(tail_of(members.continued)),
          residual_(residual),
          list_(degradations) {}

    void add_all() {
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(outcomes_.size()); ++i) {
            const DomainMember& member = domain_.members()[static_cast<std::size_t>(i)];
            if (member.eligible && i == member.owner_begin) add_eviction(member);
            if (can_change(i)) add_member(i);
            if (i == source_ && member.eligible) add_drops(i);
        }
    }

   private:
    bool can_change(std::int32_t index) const {
        return domain_.members()[static_cast<std::size_t>(index)].eligible &&
               outcomes_[static_cast<std::size_t>(index)].survives && !std::ranges::binary_search(fixed_, index);
    }

    void add_member(std::int32_t index) {
        const DomainMember& member = domain_.members()[static_cast<std::size_t>(index)];
        const HoldingShape& shape = member.shape;
        const ResourceAxes has = amounts(index);
        add_drops(index);
        if (residual_.device_pages > 0 && on_device(index) > 0) add_moves(index);
        if (residual_.image_slots_checkpoint > 0 && has.image_slots_checkpoint > 0) add_image_move(member);
        if (concerns(has) && !shape.has_image()) add_cuts(index);
        // The last one that goes is the whole owner.
        if (concerns(has) && survivors(member) > 1) add(member, DegradationKind::kDelete).relief = has;
    }

    void add_drops(std::int32_t index) {
        if (residual_.host_blocks == 0) return;
        const DomainMember& member = domain_.members()[static_cast<std::size_t>(index)];
        const HoldingOutcome& outcome = outcomes_[static_cast<std::size_t>(index)];
        const HoldingShape& shape = member.shape;
        if (shape.on_both > 0 && !outcome.drops_host)
            add(member, DegradationKind::kDropHostPages).relief.host_blocks = page_blocks(shape.on_both);
        if (shape.image_on_device && shape.image_on_host && outcome.image == ImageOutcome::kAsIs)
            add(member, DegradationKind::kDropHostImage).relief.host_blocks = domain_.targets().blocks_per_image();
    }

    void add_eviction(const DomainMember& member) {
        ResourceAxes has;
        for (std::int32_t i = member.owner_begin; i < member.owner_end; ++i) {
            if (std::ranges::binary_search(fixed_, i)) return;
            if (outcomes_[static_cast<std::size_t>(i)].survives) has += amounts(i);
        }
        if (!concerns(has)) return;
        Degradation& eviction = add(member, DegradationKind::kEvict);
        eviction.checkpoint = {};
        eviction.relief = has;
    }

    void add_moves(std::int32_t index) {
        if (domain_.targets().capacity().host_blocks == 0) return;
        const DomainMember& member = domain_.members()[static_cast<std::size_t>(index)];
        const std::int64_t end = device_end(index);
        const std::int64_t cut = std::max<std::int64_t>(0, end - residual_.device_pages);
        add_move(member, end, cut);
        if (cut > 0) add_move(member, end, 0);
    }

    void add_move(const DomainMember& member, std::int64_t end, std::int64_t device_pages) {
        Degradation& step = add(member, DegradationKind::kPagesToHost);
        step.device_pages = device_pages;
        step.relief.device_pages = std::min(end - device_pages, member.shape.on_device);
        const std::int64_t copied =
            std::clamp(member.shape.host_suffix - device_pages, std::int64_t{0}, step.relief.device_pages);
        step.relief.host_blocks = -page_blocks(copied);
        step.copied_bytes = copied * static_cast<std::int64_t>(domain_.targets().stores().kv->device().page_bytes());
    }

    void add_image_move(const DomainMember& member) {
        if (outcomes_[index_of(member)].image != ImageOutcome::kAsIs) return;
        if (!member.shape.image_on_host && domain_.targets().capacity().host_blocks == 0) return;
        Degradation& step = add(member, DegradationKind::kImageToHost);
        step.relief.image_slots_checkpoint = 1;
        if (member.shape.image_on_host) return;
        step.relief.host_blocks = -domain_.targets().blocks_per_image();
        step.copied_bytes = static_cast<std::int64_t>(domain_.targets().stores().images->size().image_bytes);
    }

    void add_cuts(std::int32_t index) {
        const DomainMember& member = domain_.members()[static_cast<std::size_t>(index)];
        const std::int64_t pages = pages_of(outcomes_[static_cast<std::size_t>(index)].frontier);
        const std::int64_t blocks = std::max<std::int64_t>(1, domain_.targets().blocks_per_page());
        const std::int64_t lacking = std::max(residual_.device_pages, (residual_.host_blocks + blocks - 1) / blocks);
        std::int64_t last = 0;
        for (const std::int64_t cut : {pages - lacking, pages / 2}) {
            if (cut < 1 || cut >= pages || cut == last) continue;
            Degradation& step = add(member, DegradationKind::kShorten);
            step.frontier = cut * kPageTokens;
            const bool frees_tail = keeps_tail(index) && cut < tail_end();
            step.relief.device_pages =
                std::max<std::int64_t>(std::min(pages - cut, member.shape.on_device), frees_tail ? 1 : 0);
            step.relief.host_blocks = page_blocks(std::min(pages - cut, member.shape.on_host));
            last = cut;
        }
    }

    // What the member wants on each axis, shared or not, or costs.
    ResourceAxes amounts(std::int32_t index) const {
        const HoldingShape& shape = domain_.members()[static_cast<std::size_t>(index)].shape;
        const HoldingOutcome& outcome = outcomes_[static_cast<std::size_t>(index)];
        const std::int64_t pages = pages_of(outcome.frontier);
        const std::int64_t left_device = std::max<std::int64_t>(0, shape.on_device - on_device(index));
        const bool image_left = outcome.image == ImageOutcome::kHostOnly;
        const bool image_on_host = image_left || (shape.image_on_host && outcome.image != ImageOutcome::kDeviceOnly);
        return {.device_pages = std::max<std::int64_t>(on_device(index), keeps_tail(index) ? 1 : 0),
                .image_slots_checkpoint = shape.image_on_device && !image_left ? 1 : 0,
                .host_blocks = page_blocks(std::min(pages, shape.on_host + left_device)) +
                               (image_on_host ? domain_.targets().blocks_per_image() : 0)};
    }
    std::int64_t on_device(std::int32_t index) const {
        return std::min(domain_.members()[static_cast<std::size_t>(index)].shape.on_device, device_end(index));
    }
    // The run that ends with the page in which a consumed source would be continued if only members keep it.
    std::int32_t tail_of(std::int32_t continued) const {
        if (continued == PlanningDomain::kNoMember) return kNoRun;
        const TargetDomain& targets = domain_.targets();
        const std::int32_t last = targets.chain(targets.holdings()[static_cast<std::size_t>(continued)]).front();
        const DomainRun& run = targets.runs()[static_cast<std::size_t>(last)];
        return run.outside_frozen + run.readers > 0 ? kNoRun : last;
    }
    bool keeps_tail(std::int32_t index) const {
        if (tail_ == kNoRun) return false;
        if (pages_of(outcomes_[static_cast<std::size_t>(index)].frontier) < tail_end()) return false;
        const TargetDomain& targets = domain_.targets();
        const auto chain = targets.chain(targets.holdings()[static_cast<std::size_t>(index)]);
        return std::ranges::find(chain, tail_) != chain.end();
    }
    std::int64_t tail_end() const {
        const DomainRun& run = domain_.targets().runs()[static_cast<std::size_t>(tail_)];
        return run.first_page + run.pages;
    }
    std::int64_t device_end(std::int32_t index) const {
        const HoldingOutcome& outcome = outcomes_[static_cast<std::size_t>(index)];
        return std::min({domain_.members()[static_cast<std::size_t>(index)].shape.device_end,
                         std::int64_t{outcome.device_pages}, pages_of(outcome.frontier)});
    }
    bool concerns(const ResourceAxes& has) const {
        return (residual_.device_pages > 0 && has.device_pages > 0) ||
               (residual_.image_slots_checkpoint > 0 && has.image_slots_checkpoint > 0) ||
               (residual_.host_blocks > 0 && has.host_blocks > 0);
    }
    std::int64_t survivors(const DomainMember& member) const {
        return std::count_if(outcomes_.begin() + member.owner_begin, outcomes_.begin() + member.owner_end,
                             [](const HoldingOutcome& outcome) { return outcome.survives; });
    }
    std::size_t index_of(const DomainMember& member) const {
        return static_cast<std::size_t>(&member - domain_.members().data());
    }
    std::int64_t page_blocks(std::int64_t pages) const { return pages * domain_.targets().blocks_per_page(); }

    Degradation& add(const DomainMember& member, DegradationKind kind) {
        Degradation& step = list_.emplace_back();
        step.kind = kind;
        step.owner = member.owner;
        step.checkpoint = member.checkpoint;
        return step;
    }

    static constexpr std::int32_t kNoRun = -1;

    const PlanningDomain& domain_;
    std::span<const HoldingOutcome> outcomes_;
    std::span<const std::int32_t> fixed_;
    std::int32_t source_;
    std::int32_t tail_;  // run or kNoRun
    const ResourceAxes& residual_;
    std::vector<Degradation>& list_;
};

}  // namespace

void list_degradations(const PlanningDomain& domain, std::span<const HoldingOutcome> outcomes,
                       const MembersOfOption& members, const ResourceAxes& residual,
                       std::vector<Degradation>& degradations) {
    DegradationListing(domain, outcomes, members, residual, degradations).add_all();
}

}  // namespace ninfer
