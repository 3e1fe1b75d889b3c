#pragma once

// The stable points on the way to a target, in their one order. What a target does not need is not left out: its stage
// is then like the one before it.
//
//   kNow          before anything happens
//   kReleased     holdings that go are released, the others shortened; redundant replicas that nobody wants are dropped
//   kDemoting     every page and image that leaves the device has its Host blocks; both replicas count
//   kDemoted      they are published, their Device replicas are gone
//   kRestoring    every page that the source has on Host alone has its device page
//   kActivating   they are published; the new sequence has its reservation, its copy of the tail and its image slot, as
//                 far as that leaves the source untouched
//   kCommitted    those are settled; what is continued in place has moved, and a consumed source is gone
//
// From one stage to the next no axis first rises and then falls, so the peak of all moments is that of the stages.

#include <array>
#include <cstdint>
#include <string_view>

namespace ninfer {

enum class ResourceStage : std::uint8_t {
    kNow,
    kReleased,
    kDemoting,
    kDemoted,
    kRestoring,
    kActivating,
    kCommitted,
};

inline constexpr std::array kResourceStages = {
    ResourceStage::kNow,       ResourceStage::kReleased,   ResourceStage::kDemoting, ResourceStage::kDemoted,
    ResourceStage::kRestoring, ResourceStage::kActivating, ResourceStage::kCommitted};

std::string_view to_string(ResourceStage stage) noexcept;

}  // namespace ninfer
