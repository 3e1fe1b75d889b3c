#pragma once

// Copies that make progress, and what follows when they end.

#include <vector>

#include "cpp/program/context_state.h"

namespace ninfer {

struct CopyProgress {
    std::int64_t open = 0;       // on their way, after this call
    std::int64_t published = 0;  // by this call
    std::int64_t failed = 0;     // by this call: tails start again, a sequence whose image failed can only be closed
    std::int64_t draining = 0;   // cancelled ones that still hold what they used
    std::vector<CheckpointHandle> removed;  // whose image could not be copied: their handles are stale
};

// Lets the engine move at most max_bytes and publishes what has arrived.
CopyProgress poll_copies(ContextState& state, std::size_t max_bytes);

// Takes back the open copies of a checkpoint; returns how many. What has been published stays. A checkpoint whose image
// was still to come is removed. kStaleHandle.
Result<std::int64_t, Refusal> cancel_copies(ContextState& state, CheckpointHandle checkpoint);

// Cancels the copies that settle this sequence, which is about to go.
void cancel_settling(ContextState& state, SequenceHandle sequence);
// Cancels every copy and lets the engine drain them, so that memory and engine can end.
void drain_copies(ContextState& state);

// Notes a copy that has just started, and in its sequence and checkpoint that it is open.
void add_job(ContextState& state, const CopyJob& job);

}  // namespace ninfer
