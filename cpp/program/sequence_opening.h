#pragma once

// Begins and ends active sequences.

#include "cpp/program/context_state.h"
#include "cpp/program/sequence_request.h"

namespace ninfer {

// An empty sequence. kTransactionOpen, kOverContext, kNoLane, kNoPages.
Result<SequenceHandle, Refusal> open_root(ContextState& state, const SequenceRequest& request);

// A sequence that has computed the checkpoint's tokens up to the frontier. Where a partial page has to be copied, or the
// image is on Host only, the sequence waits for that: until poll_copies has settled it, units refuse with kUnsettled.
// A source that is not retained must have its image on Device: a restore may fail, and must not cost anybody the source.
// Admissions that are planned (context_transaction.h) restore it first; they also count what deeper checkpoints give back,
// while here there must be room before those go. Refusals, in this order: kTransactionOpen,
// kStaleHandle, kCopyInFlight (its image is not there yet), kBeyondFrontier, kBackwards (a model with recurrent layers
// starts at the checkpoint's frontier only), kMismatch (another header), kOverReservation (fewer tokens than are
// inherited), kOverContext, kNoLane; not to retain: kCopyInFlight (the source has open copies), as
// check_takeover, kNotOnDevice (the image), kCopyInFlight and kPinned (deeper checkpoints); kNoPages, kNotOnDevice (pages), kPinned (the tail is being copied).
Result<SequenceHandle, Refusal> open_from(ContextState& state, const SequenceSource& source,
                                          const SequenceRequest& request);

// Discards everything of the sequence and of its owner; or, if it took its owner over and has not computed a token since,
// gives that back (capture.h). kTransactionOpen, kStaleHandle.
Result<Nothing, Refusal> close_sequence(ContextState& state, SequenceHandle sequence);

// Whether the checkpoint can be the source of this start, its owner, pages and all room apart. kCopyInFlight,
// kBeyondFrontier, kBackwards, kMismatch, kOverReservation as open_from.
std::optional<Refusal> check_source(const ContextState& state, const Checkpoint& checkpoint, std::int64_t frontier,
                                    const SequenceRequest& request);

// Whether a sequence may take over the owner, which anything but kRetain does. kActive (a sequence has it), kShared (it
// was published for everybody).
std::optional<Refusal> check_takeover(const ContextState& state, OwnerHandle owner);

// What a sequence begins with; all of it is its own already.
struct SequenceParts {
    LedgerId ledger;
    SpaceId kv;
    ImageId image;
    OwnerHandle owner;
    std::int64_t frontier = 0;
    Takeover takeover;
};

// Takes a free lane. Moves no revision.
SequenceHandle begin_sequence(ContextState& state, const SequenceRequest& request, const SequenceParts& parts);

// The owner's checkpoints that lie deeper than the start of a sequence that takes the owner over, the source apart.
std::vector<CheckpointHandle> deeper_checkpoints(const ContextState& state, CheckpointHandle source,
                                                 std::int64_t frontier);

}  // namespace ninfer
