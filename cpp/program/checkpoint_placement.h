#pragma once

// Where a checkpoint's bytes lie, and how they move between the tiers.

#include "cpp/program/context_state.h"

namespace ninfer {

// Whether everything of it has a replica of the right epoch and enough coverage, wherever that lies: derived from its pages
// and its image, noted nowhere. One that waits for its image is not.
bool is_valid(const ContextState& state, const Checkpoint& checkpoint);

// kStaleHandle.
Result<CheckpointSummary, Refusal> summarise(const ContextState& state, CheckpointHandle checkpoint);

// Starts copies of everything of the checkpoint that is not on the tier yet, all or none; returns the bytes that will
// move, 0 if everything is there. kTransactionOpen, kStaleHandle, kCopyInFlight (of it, or of something that it shares),
// kNoPages, kNoImageSlots, kNoHostBlocks: wanted is what the whole needs.
Result<std::int64_t, Refusal> start_copy(ContextState& state, CheckpointHandle checkpoint, Tier tier);

// Drops the replicas that the checkpoint has on the tier and that can go, the image's among them; returns how many pages
// and images that were. Others that share them lose them too. What stays is somebody's last replica, is pinned (by a copy,
// or by a sequence that has not computed yet), or on Device is read by a sequence. kTransactionOpen, kStaleHandle,
// kCopyInFlight, kNoReplica (there is none); if nothing can go, why its first page cannot, or its image: kLastReplica,
// kPinned, kActive.
Result<std::int64_t, Refusal> drop(ContextState& state, CheckpointHandle checkpoint, Tier tier);

}  // namespace ninfer
