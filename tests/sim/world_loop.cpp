#include "tests/sim/world_loop.h"

#include <cstdio>

#include "tests/sim/sim_failure.h"

namespace ninfer::sim {

int run_worlds(const SimOptions& options, const CoverageTable& coverage,
               FunctionRef<std::int64_t(std::int64_t, std::int64_t)> run_world) {
    try {
        if (options.replay_world) {
            run_world(*options.replay_world, options.steps);
            return 0;
        }
        std::int64_t left = options.steps;
        for (std::int64_t world = 0; left > 0; ++world) left -= run_world(world, left);
    } catch (const SimFailure& failure) {
        std::fprintf(stderr, "violation: %s\n", failure.what());
        return 1;
    }
    const bool enough = coverage.report(options.steps);
    std::printf("steps=%lld violations=0\n", static_cast<long long>(options.steps));
    return enough ? 0 : 1;
}

}  // namespace ninfer::sim
