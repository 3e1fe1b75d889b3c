#pragma once

// Checkpoints of active sequences: captured while the sequence goes on, or made of it when it finishes.

#include "cpp/program/context_state.h"

namespace ninfer {

struct CaptureRequest {
    CheckpointKind kind = CheckpointKind::kLongAnchor;
    Tier image_tier = Tier::kDevice;  // Host: the image is copied there at once and takes no checkpoint slot
    bool own = true;                  // joins the sequence's owner; else it gets a shared owner of its own
};

struct FinishRequest {
    CheckpointKind kind = CheckpointKind::kSessionEndpoint;
    Tier image_tier = Tier::kDevice;
};

// A checkpoint at the computed frontier: immutable pages are shared, full ones that only the sequence sees are frozen in
// place, an unaligned tail stays with the checkpoint while the sequence waits for its own copy (kUnsettled). An image on
// its way to Host is one that the sequence must not write (kCopyInFlight). An image that the sequence only borrows (it
// has not computed yet) is shared, wherever it lies.
// kStaleHandle, kCopyFailed, kUnsettled, kCopyInFlight, kBeyondFrontier (nothing is computed: wanted 1), kOverReservation
// (the page of the copy is needed for growth; wanted the reserved tokens, found those that would have a place),
// kNoImageSlots or kNoHostBlocks.
Result<CheckpointHandle, Refusal> capture(ContextState& state, SequenceHandle sequence, const CaptureRequest& request);
// How the pages would be captured now, by the same analysis. kStaleHandle, kCopyFailed, kUnsettled.
Result<CaptureShape, Refusal> capture_shape(const ContextState& state, SequenceHandle sequence);

// The sequence becomes the deepest checkpoint of its owner, at the computed frontier; tokens that were not computed and
// what it had reserved go, its own captures stay. The handle is stale afterwards. Refusals as capture, without the
// reservation's. With image_tier Host its image takes an active slot until that copy is there.
Result<OwnerHandle, Refusal> finish(ContextState& state, SequenceHandle sequence, const FinishRequest& request);

}  // namespace ninfer
