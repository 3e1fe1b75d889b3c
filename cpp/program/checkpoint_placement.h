#pragma once

// Where a checkpoint's bytes lie, and how they move between the tiers.

#include "cpp/program/context_state.h"

namespace ninfer {

// kStaleHandle.
Result<CheckpointSummary, Refusal> summarise(const ContextState& state, CheckpointHandle checkpoint);

// Starts copies of everything of the checkpoint that is not on the tier yet, all or none; returns the bytes that will
// move, 0 if everything is there. kTransactionOpen, kStaleHandle, kCopyInFlight (of it, or of something that it shares),
// kNoPages, kNoImageSlots, kNoHostBlocks: wanted is what the whole needs.
Result<std::int64_t, Refusal> start_copy(ContextState& state, CheckpointHandle checkpoint, Tier tier);

// Drops every replica that the checkpoint has on the tier, all or none: others that share them lose them too.
// kTransactionOpen, kStaleHandle,
// kCopyInFlight, kNoReplica (there is none), kLastReplica (of a page or the image), kPinned (by an open copy, or by a
// sequence that has not computed yet), kActive (a sequence reads a page on Device).
Result<Nothing, Refusal> drop(ContextState& state, CheckpointHandle checkpoint, Tier tier);

}  // namespace ninfer
