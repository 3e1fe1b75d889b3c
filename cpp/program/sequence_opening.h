#pragma once

// Begins and ends active sequences.

#include <optional>

#include "cpp/program/context_state.h"

namespace ninfer {

struct SequenceRequest {
    std::int64_t tokens = 0;    // prompt and all output, what is inherited included
    bool count_tokens = false;  // as penalties need
    std::int64_t captures = 0;  // captures at frontiers inside a page: each needs a page for the writer's copy
    IdentityHeader header = {};
};

// What becomes of the checkpoint from which a sequence starts. kConsume: its owner becomes the sequence's, with the
// checkpoints that are not deeper than the start; it and the deeper ones are deleted. Its bytes are continued in place
// where nobody else sees them.
enum class SourceUse : std::uint8_t { kRetain, kConsume };

struct SequenceSource {
    CheckpointHandle checkpoint;
    SourceUse use = SourceUse::kRetain;
    std::optional<std::int64_t> frontier = {};  // less than the checkpoint's: only for models without recurrent layers
};

// An empty sequence. kOverContext, kNoLane, kNoImageSlots, kNoPages.
Result<SequenceHandle, Refusal> open_root(ContextState& state, const SequenceRequest& request);

// A sequence that has computed the checkpoint's tokens up to the frontier. Where a partial page has to be copied, or the
// image is on Host only, the sequence waits for that: until poll_copies has settled it, units refuse with kUnsettled.
// kStaleHandle, kCopyInFlight (its image is not there yet; to consume: it or a deeper checkpoint has open copies),
// kActive (an active owner's checkpoint cannot be consumed), kBeyondFrontier, kBackwards (a model with recurrent layers
// starts at the checkpoint's frontier only), kMismatch (another header), kOverReservation (fewer tokens than are
// inherited), kOverContext, kNoLane, kNoImageSlots, kPinned (to consume), kNoPages, kNotOnDevice (pages).
Result<SequenceHandle, Refusal> open_from(ContextState& state, const SequenceSource& source,
                                          const SequenceRequest& request);

// Discards everything of the sequence and of its owner. kStaleHandle.
Result<Nothing, Refusal> close_sequence(ContextState& state, SequenceHandle sequence);

}  // namespace ninfer
