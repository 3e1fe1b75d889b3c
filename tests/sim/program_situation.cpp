#include "tests/sim/program_situation.h"

#include <iterator>

namespace ninfer::sim {
namespace {

// Without recurrent layers alone, and where the base lies on both tiers in one run: no part of a contract.
constexpr std::int64_t kPartsPerMillionSteps = 100;

// In the order of ProgramSituation.
constexpr const char* kNames[] = {"releases: committed",
                                  "releases: cancelled later",
                                  "releases: copy failed later",
                                  "releases: cancelled before them",
                                  "releases: copy failed before them",
                                  "cancelled with nothing open",
                                  "committed at once",
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
                                  "image computed in place",
                                  "image frozen by a capture",
                                  "image frozen by a finish",
                                  "image shared by a capture",
                                  "snapshot arrived",
                                  "recoveries of a target compared",
                                  "recoveries of a baseline compared",
                                  "recovery: ready at once",
                                  "recovery: restored as a whole",
                                  "recovery: from another",
                                  "recovery: from root",
                                  "recovery: several ways",
                                  "recovery: from a part",
                                  "recovery: told as more than it is"};
static_assert(std::size(kNames) + kRounds * kRoundEndings == static_cast<std::size_t>(ProgramSituation::kCount));

}  // namespace

std::vector<CoverageTable::SituationCase> program_situations(bool faults) {
    std::vector<CoverageTable::SituationCase> all;
    for (const char* round : {"demotions", "restores", "activation"})
        for (const char* ending :
             {"published", "cancelled in preparation", "cancelled in flight", "cancelled at publication", "copy failed",
              "copy failed in preparation", "copy failed at publication"})
            all.push_back({std::string(round) + ": " + ending});
    for (const char* name : kNames) all.push_back({name});
    const auto at = [&](int situation) -> std::int64_t& {
        return all[static_cast<std::size_t>(situation)].per_million_steps;
    };
    const auto of = [&](ProgramSituation situation) -> std::int64_t& { return at(static_cast<int>(situation)); };
    of(ProgramSituation::kRecoveredInPart) = of(ProgramSituation::kRecoveryOverstated) = kPartsPerMillionSteps;
    of(ProgramSituation::kReleasesFailed) = CoverageTable::kNever;
    for (int round = 0; round < kRounds; ++round)
        for (const RoundEnding never : {RoundEnding::kFailedInPreparation, RoundEnding::kFailedAtPublication})
            at(situation_of_round(round, never)) = CoverageTable::kNever;
    if (faults) return all;
    for (int round = 0; round < kRounds; ++round)
        at(situation_of_round(round, RoundEnding::kCopyFailed)) = CoverageTable::kNever;
    for (const ProgramSituation never :
         {ProgramSituation::kReleasedCopyFailed, ProgramSituation::kSnapshotFailed, ProgramSituation::kSettlingFailed})
        of(never) = CoverageTable::kNever;
    return all;
}

}  // namespace ninfer::sim
