#pragma once

// A sealed target: everything that is needed to carry it out, in the handles of the stores, in the one order of the
// stages. Move-only, bound to the revision at which its domain was read, used up by one start. Nothing of it can be
// changed after it was sealed, and it refers to no domain.

#include <cstdint>
#include <optional>
#include <vector>

#include "cpp/base/result.h"
#include "cpp/transaction/resource_projection.h"

namespace ninfer {

struct HoldingCut {
    std::int32_t holding = 0;
    std::int64_t frontier = 0;
};

// By stage. Pages and images of one list are different ones.
struct ResourceSteps {
    // kReleased
    std::vector<std::int32_t> removed;  // holdings; not the consumed source
    std::vector<HoldingCut> shortened;
    std::vector<PageId> host_page_drops;
    std::vector<ImageId> host_image_drops;
    std::vector<PageId> device_page_drops;
    std::vector<ImageId> device_image_drops;
    // kDemoting, kDemoted
    std::vector<PageId> demoted_pages;
    std::vector<ImageId> demoted_images;
    // kRestoring
    std::vector<PageId> restored_pages;
    // kCommitted
    std::vector<PageId> late_host_drops;

    bool releases_anything() const noexcept {
        return !(removed.empty() && shortened.empty() && host_page_drops.empty() && host_image_drops.empty() &&
                 device_page_drops.empty() && device_image_drops.empty());
    }
};

class ResourcePlan {
   public:
    ResourcePlan(ResourcePlan&&) = default;
    ResourcePlan& operator=(ResourcePlan&&) = default;
    ResourcePlan(const ResourcePlan&) = delete;
    ResourcePlan& operator=(const ResourcePlan&) = delete;

    // Projects the target once more. kNoPages, kNoImageSlots, kNoHostBlocks (the peak does not fit: wanted the peak, found the capacity of the first axis
    // that is exceeded), kPinned (something that would change).
    static Result<ResourcePlan, Refusal> seal(ResourceProjector& projector, std::span<const HoldingOutcome> outcomes,
                                              const ResourceNeed& need);

    std::uint64_t revision() const noexcept { return revision_; }
    std::span<const Holding> holdings() const noexcept { return holdings_; }
    std::span<const HoldingOutcome> outcomes() const noexcept { return outcomes_; }
    const ResourceNeed& need() const noexcept { return need_; }
    const ResourceProjection& projection() const noexcept { return projection_; }
    const ResourceSteps& steps() const noexcept { return steps_; }

   private:
    ResourcePlan() = default;

    std::uint64_t revision_ = 0;
    std::vector<Holding> holdings_;
    std::vector<HoldingOutcome> outcomes_;
    ResourceNeed need_;
    ResourceProjection projection_;
    ResourceSteps steps_;
};

// Why a projected target cannot be carried out now. As ResourcePlan::seal.
std::optional<Refusal> refusal_of(const ResourceProjection& projection, const ResourceAxes& capacity);

}  // namespace ninfer
