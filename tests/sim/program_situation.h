#pragma once

// Situations that the simulation of a program's state counts besides operations and refusals.

#include <vector>

#include "tests/sim/coverage_table.h"

namespace ninfer::sim {

// How a transition left a round of copies. Copies fail in flight only: in the phases before that there are none, and those
// to be published have arrived.
enum class RoundEnding {
    kPublished,
    kCancelledInPreparation,
    kCancelledInFlight,
    kCancelledAtPublication,
    kCopyFailed,
    kFailedInPreparation,
    kFailedAtPublication
};
inline constexpr int kRounds = 3;
inline constexpr int kRoundEndings = 7;

enum class ProgramSituation {
    kReleasedCommitted = kRounds * kRoundEndings,
    kReleasedCancelled,  // later
    kReleasedCopyFailed,
    kReleasesCancelled,  // before them
    kReleasesFailed,
    kCancelledNothing,  // nothing is open, as after a commit
    kAtOnce,            // committed within the start, nothing copied
    kDrained,           // aborted, and the engine took its time
    kCancelledWhileDraining,
    kAbortedChanged,  // releases or demotions that stay
    kChangedBesides,
    kRemoved,
    kShortened,
    kOwnerEvicted,
    kMoved,
    kForked,
    kForkedWithTail,
    kImageMoved,
    kImageForked,
    kImageRestored,
    kConsumed,
    kContinued,
    kTruncated,
    kCaptured,
    kCaptureSkipped,
    kFinished,
    kFinishSkipped,
    kOnlyChanged,  // nothing was published
    kCondemned,
    kSnapshotFailed,
    kSettlingFailed,
    kGivenBack,  // a sequence that took its owner over was closed before it had computed
    kReady,
    kNeedsTransfer,
    kBlocked,
    kInfeasible,
    kMaximal,
    kLeftOut,
    kStalePlan,
    kComputedInPlace,  // operations on state besides those of transitions
    kFrozenByCapture,
    kFrozenByFinish,
    kSharedByCapture,  // the sequence has nothing of its own yet
    kSnapshotArrived,
    kRecoveriesCompared,  // of a target, with the model's
    kBaselinesCompared,
    kReadyAtOnce,  // recoveries: nothing is restored or computed
    kRestoredWhole,
    kRecoveredFromAnother,  // or from its own beginning
    kRecoveredFromRoot,
    kSeveralRecoveries,   // of one checkpoint
    kRecoveredInPart,     // from the beginning of one that has more
    kRecoveryOverstated,  // fewer pages are missing below the base's frontier than are told
    kCount,
};

inline int situation_of_round(int round, RoundEnding ending) {
    return round * kRoundEndings + static_cast<int>(ending);
}

// In the order of their numbers; without faults those that need one cannot be.
std::vector<CoverageTable::SituationCase> program_situations(bool faults);

}  // namespace ninfer::sim
