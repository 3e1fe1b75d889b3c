#include "cpp/transaction/resource_plan.h"

#include "cpp/base/assert.h"

namespace ninfer {

namespace {

// Names the pages and images of the changes that a projector tells.
class StepList {
   public:
    StepList(const TargetDomain& domain, ResourceSteps& steps) : domain_(domain), steps_(steps) {}

    void add(const DomainRun& run, const SegmentChange& change) {
        if (!names_pages(change)) return;  // what goes with its holding is not named
        read_pages(run.id);
        append(change.drop_host, steps_.host_page_drops);
        append(change.drop_device, steps_.device_page_drops);
        append(change.demote, steps_.demoted_pages);
        append(change.restore, steps_.restored_pages);
        append(change.drop_host_at_commit, steps_.late_host_drops);
    }
    void add(const DomainImage& image, const ImageChange& change) {
        if (change.drop_host) steps_.host_image_drops.push_back(image.id);
        if (change.drop_device) steps_.device_image_drops.push_back(image.id);
        if (change.demote) steps_.demoted_images.push_back(image.id);
    }

   private:
    static bool names_pages(const SegmentChange& change) {
        return change.drop_host.size() + change.drop_device.size() + change.demote.size() + change.restore.size() +
                   change.drop_host_at_commit.size() >
               0;
    }
    void read_pages(RunId run) {
        if (run == run_) return;
        run_ = run;
        pages_.clear();
        domain_.stores().kv->for_each_page_of(run, [&](PageId page, const LogicalPage&) { pages_.push_back(page); });
    }
    void append(const PageRange& range, std::vector<PageId>& list) const {
        NINFER_ASSERT_LE(range.end, std::ssize(pages_));
        list.insert(list.end(), pages_.begin() + range.begin, pages_.begin() + range.end);
    }

    const TargetDomain& domain_;
    ResourceSteps& steps_;
    RunId run_;
    std::vector<PageId> pages_;  // of that run
};

void add_holdings(const TargetDomain& domain, std::span<const HoldingOutcome> outcomes, const ResourceNeed& need,
                  ResourceSteps& steps) {
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(outcomes.size()); ++i) {
        const HoldingOutcome& outcome = outcomes[static_cast<std::size_t>(i)];
        if (!outcome.survives)
            steps.removed.push_back(i);
        else if (i != need.source && outcome.frontier < domain.holdings()[static_cast<std::size_t>(i)].frontier)
            steps.shortened.push_back({i, outcome.frontier});
    }
}

}  // namespace

std::optional<Refusal> refusal_of(const ResourceProjection& projection, const ResourceAxes& capacity) {
    const ResourceAxes& peak = projection.peak;
    const ResourceAxes& excess = projection.residual;
    if (excess.device_pages > 0) return Refusal{RefusalKind::kNoPages, peak.device_pages, capacity.device_pages};
    if (excess.image_slots_active > 0)
        return Refusal{RefusalKind::kNoImageSlots, peak.image_slots_active, capacity.image_slots_active};
    if (excess.image_slots_checkpoint > 0)
        return Refusal{RefusalKind::kNoImageSlots, peak.image_slots_checkpoint, capacity.image_slots_checkpoint};
    if (excess.host_blocks > 0) return Refusal{RefusalKind::kNoHostBlocks, peak.host_blocks, capacity.host_blocks};
    if (projection.pins > 0) return Refusal{RefusalKind::kPinned, 0, projection.pins};
    return std::nullopt;
}

Result<ResourcePlan, Refusal> ResourcePlan::seal(ResourceProjector& projector, std::span<const HoldingOutcome> outcomes,
                                                 const ResourceNeed& need) {
    const TargetDomain& domain = projector.domain();
    ResourcePlan plan;
    plan.projection_ = projector.project(outcomes, need);
    if (const auto refusal = refusal_of(plan.projection_, domain.capacity())) return *refusal;
    plan.revision_ = domain.revision();
    for (const DomainHolding& holding : domain.holdings()) plan.holdings_.push_back(holding.holding);
    plan.outcomes_.assign(outcomes.begin(), outcomes.end());
    plan.need_ = need;
    add_holdings(domain, outcomes, need, plan.steps_);
    StepList list(domain, plan.steps_);
    projector.for_each_segment_change(
        [&](const DomainRun& run, const SegmentChange& change) { list.add(run, change); });
    projector.for_each_image_change(
        [&](const DomainImage& image, const ImageChange& change) { list.add(image, change); });
    return plan;
}

}  // namespace ninfer
