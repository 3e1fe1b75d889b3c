#pragma once

// Owners that nobody may touch, as a planning session, a start and a proof are given them.

#include <optional>
#include <span>

#include "cpp/program/context_state.h"

namespace ninfer {

// kStaleHandle: whoever protects something that is gone protects nothing, and has to know.
std::optional<Refusal> check_owners(const ContextState& state, std::span<const OwnerHandle> owners);
// kProtected. The checkpoint's handle is valid.
std::optional<Refusal> check_unprotected(const ContextState& state, CheckpointHandle checkpoint,
                                         std::span<const OwnerHandle> protected_owners);

}  // namespace ninfer
