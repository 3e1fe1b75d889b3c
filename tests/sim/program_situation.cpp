#include "tests/sim/program_situation.h"

namespace ninfer::sim {
namespace {

// Ways that a transition can take, and what goes on beside it.
constexpr std::int64_t kWaysPerMillionSteps = 200;
// A capture is planned, has to wait for somebody else's copies, nobody cancels it and none of them fails, and its sequence
// goes on meanwhile: four things that are rare by themselves.
constexpr std::int64_t kSkippedPerMillionSteps = 20;
// Without recurrent layers alone, and where the base lies on both tiers in one run.
constexpr std::int64_t kPartsPerMillionSteps = 100;

}  // namespace

std::vector<CoverageTable::SituationCase> program_situations(bool faults) {
    std::vector<CoverageTable::SituationCase> all;
    for (const char* round : {"demotions", "restores", "activation"})
        for (const char* ending : {"published", "cancelled in preparation", "cancelled in flight",
                                   "cancelled at publication", "copy failed"})
            all.push_back({std::string(round) + ": " + ending});
    // The first round is prepared by the call that starts the transition.
    all[static_cast<std::size_t>(situation_of_round(0, RoundEnding::kCancelledInPreparation))].name.clear();
    for (const char* name : {"releases: committed", "releases: cancelled later", "releases: copy failed later"})
        all.push_back({name});
    for (const char* name : {"committed at once",
                             "drained",
                             "cancelled while draining",
                             "aborted with changes",
                             "changed besides",
                             "checkpoint removed",
                             "checkpoint shortened",
                             "owner evicted",
                             "pages moved",
                             "pages forked",
                             "pages forked with a tail",
                             "image moved",
                             "image forked",
                             "image restored",
                             "source consumed",
                             "source continued",
                             "source truncated",
                             "captured",
                             "capture skipped",
                             "finished",
                             "finish skipped",
                             "nothing published",
                             "condemned",
                             "snapshot failed",
                             "settling failed",
                             "given back",
                             "target ready",
                             "target needs transfer",
                             "target blocked",
                             "target infeasible",
                             "maximal target",
                             "option left out",
                             "stale plan",
                             "recoveries of a target compared",
                             "recoveries of a baseline compared",
                             "recovery: ready at once",
                             "recovery: restored as a whole",
                             "recovery: from another",
                             "recovery: from root",
                             "recovery: several ways",
                             "recovery: from a part",
                             "recovery: told as more than it is"})
        all.push_back({name, kWaysPerMillionSteps});
    for (const ProgramSituation rare : {ProgramSituation::kCaptureSkipped, ProgramSituation::kFinishSkipped})
        all[static_cast<std::size_t>(rare)].per_million_steps = kSkippedPerMillionSteps;
    for (const ProgramSituation rare : {ProgramSituation::kRecoveredInPart, ProgramSituation::kRecoveryOverstated})
        all[static_cast<std::size_t>(rare)].per_million_steps = kPartsPerMillionSteps;
    if (faults) return all;
    for (int round = 0; round < kRounds; ++round)
        all[static_cast<std::size_t>(situation_of_round(round, RoundEnding::kCopyFailed))].name.clear();
    all[static_cast<std::size_t>(ProgramSituation::kReleasedCopyFailed)].name.clear();
    all[static_cast<std::size_t>(ProgramSituation::kSnapshotFailed)].name.clear();
    all[static_cast<std::size_t>(ProgramSituation::kSettlingFailed)].name.clear();
    return all;
}

}  // namespace ninfer::sim
