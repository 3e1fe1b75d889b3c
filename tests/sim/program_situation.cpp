#include "tests/sim/program_situation.h"

namespace ninfer::sim {

std::vector<std::string> program_situation_names(bool faults) {
    std::vector<std::string> names;
    for (const char* round : {"demotions", "restores", "activation"})
        for (const char* ending : {"published", "cancelled in preparation", "cancelled in flight",
                                   "cancelled at publication", "copy failed"})
            names.push_back(std::string(round) + ": " + ending);
    // The first round is prepared by the call that starts the transition.
    names[static_cast<std::size_t>(situation_of_round(0, RoundEnding::kCancelledInPreparation))].clear();
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
                             "target ready",
                             "target needs transfer",
                             "target blocked",
                             "target infeasible",
                             "maximal target",
                             "stale plan"})
        names.emplace_back(name);
    if (faults) return names;
    for (int round = 0; round < kRounds; ++round)
        names[static_cast<std::size_t>(situation_of_round(round, RoundEnding::kCopyFailed))].clear();
    names[static_cast<std::size_t>(ProgramSituation::kSnapshotFailed)].clear();
    names[static_cast<std::size_t>(ProgramSituation::kSettlingFailed)].clear();
    return names;
}

}  // namespace ninfer::sim
