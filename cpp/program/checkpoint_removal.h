#pragma once

// Deletes checkpoints. What other checkpoints or sequences see of one stays.

#include <span>

#include "cpp/program/context_state.h"

namespace ninfer {

// Whether all of them can go at once: judged by what would go with them together, so that pages which only they see do
// not keep each other. kCopyInFlight (a copy of one is open), kPinned (something that would go is read by an open copy
// or by a sequence that has not computed yet).
std::optional<Refusal> check_removal(const ContextState& state, std::span<const CheckpointHandle> checkpoints);

// kTransactionOpen, kStaleHandle, and as check_removal.
Result<Nothing, Refusal> delete_checkpoint(ContextState& state, CheckpointHandle checkpoint);
// With all its checkpoints. kTransactionOpen, kStaleHandle, kActive, and as check_removal.
Result<Nothing, Refusal> release_owner(ContextState& state, OwnerHandle owner);

// Removes a checkpoint, whatever pins it: pinned parts are condemned. Its copies must not be open. Moves no revision.
void discard_checkpoint(ContextState& state, CheckpointHandle checkpoint);
// Each of the two may be none; what cannot be released now is condemned.
void release_or_condemn(ContextState& state, Condemned parts);
// Its only user ends.
void release_ledger(ContextState& state, LedgerId ledger);
// Whether anything could be released.
bool release_condemned(ContextState& state);
// What a sequence holds of its source, if anything: its own tail is there, or it ends.
void release_source(ContextState& state, Takeover& takeover);

}  // namespace ninfer
