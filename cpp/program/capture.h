#pragma once

// Checkpoints of active sequences: captured while the sequence goes on, or made of it when it finishes.

#include "cpp/program/capture_request.h"
#include "cpp/program/context_state.h"
#include "cpp/transaction/resource_axes.h"

namespace ninfer {

// A checkpoint at the computed frontier: immutable pages are shared, full ones that only the sequence sees are frozen in
// place, an unaligned tail stays with the checkpoint while the sequence waits for its own copy (kUnsettled). An image on
// its way to Host is one that the sequence must not write (kCopyInFlight). An image that the sequence only borrows (it
// has not computed yet) is shared, wherever it lies.
// kTransactionOpen, kStaleHandle, kCopyFailed, kUnsettled, kCopyInFlight, kBeyondFrontier (nothing is computed: wanted 1), kOverReservation
// (the page of the copy is needed for growth; wanted the reserved tokens, found those that would have a place),
// kNoImageSlots or kNoHostBlocks.
Result<CheckpointHandle, Refusal> capture(ContextState& state, SequenceHandle sequence, const CaptureRequest& request);
// What a capture or a finish must find free for its image, now. Refusals as those, without the room's and kTransactionOpen.
Result<ResourceAxes, Refusal> capture_room(const ContextState& state, SequenceHandle sequence,
                                           const CaptureRequest& request);
Result<ResourceAxes, Refusal> finish_room(const ContextState& state, SequenceHandle sequence,
                                          const FinishRequest& request);
// How the pages would be captured now, by the same analysis. kStaleHandle, kCopyFailed, kUnsettled.
Result<CaptureShape, Refusal> capture_shape(const ContextState& state, SequenceHandle sequence);

// The sequence becomes the deepest checkpoint of its owner, at the computed frontier; tokens that were not computed and
// what it had reserved go, its own captures stay. The handle is stale afterwards. Refusals as capture, without the
// reservation's. With image_tier Host its image takes an active slot until that copy is there.
Result<OwnerHandle, Refusal> finish(ContextState& state, SequenceHandle sequence, const FinishRequest& request);

// Whether a sequence that ends now leaves its owner as it was: it took the owner over, has not computed a token since, and
// either the source is still there, or a checkpoint can be made of what the sequence has: its image needs a slot for that,
// unless it is only borrowed. Deeper checkpoints that went with the start, and Host replicas of what was to be written, do
// not come back.
bool gives_back(const ContextState& state, const Sequence& sequence);
// What gives_back says. The sequence's copies must have been cancelled; its handle is stale afterwards. A consumed source
// is a checkpoint of the same kind again, under another handle; captures made since stay. Moves no revision.
void give_back(ContextState& state, SequenceHandle sequence);

}  // namespace ninfer
