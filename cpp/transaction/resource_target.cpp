#include "cpp/transaction/resource_target.h"

#include "cpp/base/assert.h"
#include "cpp/state/page_count.h"
#include "cpp/transaction/target_domain.h"

namespace ninfer {

namespace {

void check_outcome(const TargetDomain& domain, const DomainHolding& holding, const HoldingOutcome& outcome) {
    if (!outcome.survives) return;
    const bool has_images = domain.stores().images != nullptr;
    NINFER_ASSERT_LE(outcome.frontier, holding.frontier);
    if (has_images)
        NINFER_ASSERT_EQ(outcome.frontier, holding.frontier);
    else if (holding.frontier > 0)
        NINFER_ASSERT_LE(1, outcome.frontier);
    NINFER_ASSERT_LE(0, outcome.device_pages);
    NINFER_ASSERT_LE(outcome.device_pages, holding.pages);
    if (outcome.image == ImageOutcome::kAsIs) return;
    NINFER_ASSERT(has_images, "the outcome of an image where there is none");
    if (outcome.image == ImageOutcome::kDeviceOnly)
        NINFER_ASSERT(domain.images()[static_cast<std::size_t>(holding.image)].on_device,
                      "the only replica of an image is on Host");
}

void check_source(const TargetDomain& domain, std::span<const HoldingOutcome> outcomes, const ResourceNeed& need) {
    NINFER_ASSERT_LE(0, need.source);
    NINFER_ASSERT_LT(need.source, std::ssize(domain.holdings()));
    const DomainHolding& source = domain.holdings()[static_cast<std::size_t>(need.source)];
    HoldingOutcome outcome = outcomes[static_cast<std::size_t>(need.source)];
    outcome.drops_host = false;
    if (outcome.image == ImageOutcome::kDeviceOnly) outcome.image = ImageOutcome::kAsIs;
    NINFER_ASSERT(outcome == domain.identity_of(need.source), "the source of a new sequence is degraded");
    NINFER_ASSERT_LE(0, need.frontier);
    NINFER_ASSERT_LE(need.frontier, source.frontier);
    if (domain.stores().images != nullptr) NINFER_ASSERT_EQ(need.frontier, source.frontier);
    NINFER_ASSERT_LE(pages_of(need.frontier), need.pages);
}

}  // namespace

void check_target(const TargetDomain& domain, std::span<const HoldingOutcome> outcomes, const ResourceNeed& need) {
    NINFER_ASSERT_EQ(std::ssize(outcomes), std::ssize(domain.holdings()));
    for (std::size_t i = 0; i < outcomes.size(); ++i) check_outcome(domain, domain.holdings()[i], outcomes[i]);
    if (need.kind == ResourceNeed::Kind::kSource)
        check_source(domain, outcomes, need);
    else
        NINFER_ASSERT_EQ(need.source, ResourceNeed::kNoHolding);
    NINFER_ASSERT_LE(0, need.pages);
}

}  // namespace ninfer
