#pragma once

// What a complete target comes to: facts of the joint post-state, never prices. Plain numbers only, so that many of them
// are one array for whoever prices them.

#include <array>
#include <cstdint>
#include <string_view>

#include "cpp/state/refusal.h"
#include "cpp/transaction/resource_projection.h"

namespace ninfer {

enum class TargetStatus : std::uint8_t {
    kReady,                  // can be carried out within one call: nothing is copied
    kNeedsTransfer,          // can be carried out; copies take their time
    kTemporarilyBlocked,     // cannot be carried out now, but with less active, or as another target, it may be
    kPermanentlyInfeasible,  // what is to be published does not fit this engine, even alone
};

inline constexpr std::int64_t kTargetStatuses = 4;

std::string_view to_string(TargetStatus status) noexcept;

struct TargetAssessment {
    TargetStatus status = TargetStatus::kReady;
    RefusalKind reason = {};  // of the two last ones, with its values
    std::int64_t wanted = 0;
    std::int64_t found = 0;

    std::array<ResourceAxes, kResourceStages.size()> used;  // at each stage
    ResourceAxes peak;
    ResourceAxes residual;  // by how much the peak exceeds the capacity
    std::int64_t pins = 0;  // on what would change
    CopyWork to_host;
    CopyWork to_device;
    CopyWork within_device;
    // Copies that begin at the commit, of what a capture or finish publishes: its image, and the writer's tail.
    CopyWork own_to_host;
    CopyWork own_within_device;
    KvActivation kv = KvActivation::kNone;
    ImageActivation image = ImageActivation::kNone;

    std::int64_t reused_tokens = 0;    // of an admission
    std::int64_t computed_tokens = 0;  // of its prompt, still to be computed

    // What becomes of inactive owners. Checkpoints that leave with their consumed source are not among those removed.
    std::int64_t checkpoints_leaving = 0;
    std::int64_t checkpoints_removed = 0;
    std::int64_t checkpoints_shortened = 0;
    std::int64_t checkpoints_moved = 0;  // remain, with less on Device or on Host than they have
    std::int64_t owners_evicted = 0;

    bool feasible() const noexcept { return status <= TargetStatus::kNeedsTransfer; }
    // Whether degrading inactive owners further can make it feasible.
    bool is_short_of_cache() const noexcept {
        return residual.device_pages > 0 || residual.image_slots_checkpoint > 0 || residual.host_blocks > 0;
    }
};

}  // namespace ninfer
