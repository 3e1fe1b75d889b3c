#pragma once

// Why a copy is on its way: who waits for it, and what its end means.

#include "cpp/program/owner.h"
#include "cpp/program/sequence.h"
#include "cpp/state/replica_copies.h"

namespace ninfer {

enum class CopyPurpose : std::uint8_t {
    kSettling,   // a sequence's tail or restored image: it computes nothing before
    kPlacement,  // a page or the image of a checkpoint, to another tier
    kSnapshot,   // the image of a new checkpoint; `sequence` writes nothing before, if it is still open
};

struct CopyJob {
    CopyId copy;
    CopyPurpose purpose = CopyPurpose::kPlacement;
    SequenceHandle sequence;
    CheckpointHandle checkpoint;
};

}  // namespace ninfer
