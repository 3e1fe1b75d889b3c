#pragma once

// How a transition of a program's resources has ended: absolutely, naming every checkpoint that is gone, so that whoever
// keeps a catalog compares and adopts, and never replays.

#include <cstdint>
#include <optional>
#include <vector>

#include "cpp/program/sequence.h"
#include "cpp/transaction/transaction_result.h"

namespace ninfer {

// A published checkpoint never changes its frontier: a shortened one is gone, and another one begins like it.
struct ShortenedCheckpoint {
    CheckpointHandle before;
    CheckpointHandle after;  // in the same owner
    std::int64_t frontier = 0;
};

// A checkpoint of the plan that remains.
struct CheckpointPlacement {
    CheckpointHandle checkpoint;
    HoldingPlacement placement;
};

struct ResourceResult {
    TransactionEnd end = TransactionEnd::kCommitted;
    bool changed = false;  // anything at all; an aborted transition may have released or moved something
    std::vector<CheckpointHandle> removed;  // a consumed source among them; not the shortened ones
    std::vector<ShortenedCheckpoint> shortened;
    std::vector<OwnerHandle> owners_gone;         // with their last checkpoint
    std::vector<CheckpointPlacement> placements;  // now
    // What was published; each may be none.
    SequenceHandle sequence;
    CheckpointHandle captured;
    OwnerHandle finished;
    // Why a committed capture or finish has published nothing: the sequence is gone, has gone on since (kBackwards), or
    // as capture and finish refuse.
    std::optional<Refusal> skipped;
    ResourceAxes used;           // now
    ResourceAxes peak;           // measured: the most of each axis at any moment since the start
    std::uint64_t revision = 0;  // now
};

}  // namespace ninfer
