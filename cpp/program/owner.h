#pragma once

// An owner: checkpoints of one lineage that are kept and released together.
//
// Roles: active while a sequence computes on its lineage (its own captures), private once that has finished, shared for
// a checkpoint that was published for everybody: sequences may start from it, but none takes it over. A private or shared
// owner goes with its last checkpoint.

#include <cstdint>
#include <string_view>
#include <vector>

#include "cpp/state/handle.h"

namespace ninfer {

using OwnerHandle = Handle<struct OwnerTag>;
using CheckpointHandle = Handle<struct CheckpointTag>;

enum class OwnerRole : std::uint8_t { kActive, kPrivate, kShared };

std::string_view to_string(OwnerRole role) noexcept;

struct Owner {
    OwnerRole role = OwnerRole::kActive;
    std::vector<CheckpointHandle> checkpoints;  // by ascending frontier, equal ones in the order of capture
};

using OwnerSummary = Owner;

}  // namespace ninfer
