#pragma once

// How each checkpoint could be had again when a target has been reached, found by trying everybody: the target is carried
// out on a copy of the model, tokens are compared one by one, and of all ways those are kept that no other one makes
// needless. No run, no plan and no recipe of cpp/program is used.

#include <vector>

#include "tests/sim/model_transition.h"

namespace ninfer::sim {

// One way: restore the base, then compute the tokens from its frontier on. Root restores nothing.
struct ModelRecovery {
    Key base = 0;  // 0: root
    int base_frontier = 0;
    int pages = 0;  // to be restored, at most: those missing anywhere in the base, but no more than the frontier has
    int pages_needed = 0;  // of them, those below the frontier
    bool image = false;

    std::int64_t bytes(const ContextSizes& sizes) const;
    bool operator==(const ModelRecovery&) const = default;
};

class RecoveryModel {
   public:
    RecoveryModel(const ContextModel& before, const ModelNeed& need, const ModelTarget& target)
        : before_(before), after_(reached(before, need, target)) {}

    // Every way to have again what the checkpoint is before the target, each base used as far as it can serve.
    std::vector<ModelRecovery> all_of(Key checkpoint) const;
    // A base that is used up to there. 0, 0: root.
    ModelRecovery recovery_from(Key base, int frontier) const;
    // Those that nobody beats, the deepest first: each restores less than all before it. Twins are told once.
    std::vector<ModelRecovery> best_of(Key checkpoint) const;

   private:
    const ContextModel& before_;
    ContextModel after_;
};

}  // namespace ninfer::sim
