#include "tests/sim/transition_coverage.h"

namespace ninfer::sim {
namespace {

ProgramSituation situation_of_releases(TransactionEnd end) {
    if (end == TransactionEnd::kCommitted) return ProgramSituation::kReleasedCommitted;
    return end == TransactionEnd::kCancelled ? ProgramSituation::kReleasedCancelled
                                             : ProgramSituation::kReleasedCopyFailed;
}

RoundEnding ending_of(ModelPhase phase, bool failed) {
    switch (phase) {
        case ModelPhase::kPreparation:
            return failed ? RoundEnding::kFailedInPreparation : RoundEnding::kCancelledInPreparation;
        case ModelPhase::kInFlight:
            return failed ? RoundEnding::kCopyFailed : RoundEnding::kCancelledInFlight;
        case ModelPhase::kPublication:
            return failed ? RoundEnding::kFailedAtPublication : RoundEnding::kCancelledAtPublication;
        default:
            throw SimFailure("a transition is aborted outside of its rounds");
    }
}

}  // namespace

void count_ways(ProgramSim& sim, const ModelTransition& transition) {
    constexpr ProgramSituation kPages[] = {ProgramSituation::kCount, ProgramSituation::kCount,
                                           ProgramSituation::kForked, ProgramSituation::kMoved};
    constexpr ProgramSituation kImages[] = {ProgramSituation::kCount, ProgramSituation::kCount,
                                            ProgramSituation::kImageForked, ProgramSituation::kImageMoved,
                                            ProgramSituation::kImageRestored};
    const auto count = [&](ProgramSituation situation) {
        if (situation != ProgramSituation::kCount) sim.count(situation);
    };
    if (!transition.removed.empty()) sim.count(ProgramSituation::kRemoved);
    if (!transition.shortened.empty()) sim.count(ProgramSituation::kShortened);
    if (!transition.owners_gone.empty()) sim.count(ProgramSituation::kOwnerEvicted);
    if (transition.changed_besides) sim.count(ProgramSituation::kChangedBesides);
    if (transition.releases()) sim.count(situation_of_releases(transition.end));
    if (transition.end != TransactionEnd::kCommitted) {
        if (transition.changed) sim.count(ProgramSituation::kAbortedChanged);
        return;
    }
    count(kPages[static_cast<int>(transition.kv)]);
    count(kImages[static_cast<int>(transition.image)]);
    const auto published = [&](int round) {
        sim.count(static_cast<ProgramSituation>(situation_of_round(round, RoundEnding::kPublished)));
    };
    if (transition.kv == KvActivation::kFork && transition.need.frontier % 64 != 0)
        sim.count(ProgramSituation::kForkedWithTail);
    for (int round = 0; round < kRounds; ++round)
        if (transition.has_copies(round)) published(round);
}

void count_abort(ProgramSim& sim) {
    const ModelTransition& transition = *sim.model.transition;
    const bool drains = transition.phase == ModelPhase::kDraining;
    if (!drains && transition.phase != ModelPhase::kAborted) return;
    if (drains) sim.count(ProgramSituation::kDrained);
    const bool failed = transition.end == TransactionEnd::kCopyFailed;
    if (transition.aborted_in == ModelPhase::kReleases)
        return sim.count(failed ? ProgramSituation::kReleasesFailed : ProgramSituation::kReleasesCancelled);
    const RoundEnding ending = ending_of(transition.aborted_in, failed);
    sim.count(static_cast<ProgramSituation>(situation_of_round(transition.round, ending)));
}

}  // namespace ninfer::sim
