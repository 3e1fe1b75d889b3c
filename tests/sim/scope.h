#pragma once

// A scope of the simulation: operations on worlds of one kind, drawn by weight, everything compared after each, everything
// ended at last. A world depends only on the seed and its number, so one can be repeated alone.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <numeric>
#include <span>
#include <vector>

#include "tests/sim/coverage_table.h"
#include "tests/sim/running_world.h"
#include "tests/sim/sim_failure.h"
#include "tests/sim/sim_options.h"
#include "tests/sim/sim_random.h"

namespace ninfer::sim {

template <typename Sim>
struct Operation {
    const char* name;
    int weight;
    RefusalSet refusals;  // that its contract names
    void (*run)(Sim&);
    bool (*useful)(Sim&);              // whether it has anything to work on
    bool (*possible)(Sim&) = nullptr;  // whether there can be anything in this world at all
};

template <typename Sim>
struct Scope {
    const char* name;
    std::span<const Operation<Sim>> operations;
    std::int64_t (*steps_of)(std::int64_t world);
    void (*check)(Sim&);
    void (*tear_down)(Sim&);
};

// Each world does some things more often than others, so that together they get into more corners than any one mix would.
template <typename Sim>
std::vector<int> draw_weights(const Scope<Sim>& scope, Sim& sim) {
    constexpr int kFactors[] = {1, 4, 4, 10};
    std::vector<int> weights;
    for (const Operation<Sim>& operation : scope.operations) {
        const bool possible = operation.possible == nullptr || operation.possible(sim);
        weights.push_back(possible ? operation.weight * kFactors[sim.random.below(4)] : 0);
    }
    return weights;
}

// Mostly one that has something to work on.
template <typename Sim>
std::size_t draw_operation(const Scope<Sim>& scope, Sim& sim, std::span<const int> weights) {
    constexpr int kUselessPercent = 4;
    const int sum = std::accumulate(weights.begin(), weights.end(), 0);
    for (;;) {
        int left = sim.random.below(sum);
        std::size_t chosen = 0;
        while (left >= weights[chosen]) left -= weights[chosen++];
        if (scope.operations[chosen].useful(sim) || sim.random.percent(kUselessPercent)) return chosen;
    }
}

// Makes at most `steps_left` steps and returns how many. SimFailure.
template <typename Sim>
std::int64_t run_world(const Scope<Sim>& scope, RunningWorld& place, std::int64_t steps_left, CoverageTable& coverage) {
    Sim sim(mix(place.options.seed) ^ mix(static_cast<std::uint64_t>(place.world) + 1), place.options.faults, coverage);
    place.operation = [&sim] { return std::string(sim.story()); };
    place.model = [&sim] { return sim.model.text(); };
    set_running_world(&place);
    const std::vector<int> weights = draw_weights(scope, sim);
    const std::int64_t steps = std::min(scope.steps_of(place.world), steps_left);
    try {
        for (place.step = 0; place.step < steps; ++place.step) {
            const std::size_t operation = draw_operation(scope, sim, weights);
            sim.begin(static_cast<int>(operation));
            scope.operations[operation].run(sim);
            if (place.options.replay_world) std::printf("%lld: %s\n", static_cast<long long>(place.step), sim.story());
            scope.check(sim);
        }
        scope.tear_down(sim);
    } catch (...) {
        place.print();
        set_running_world(nullptr);
        throw;
    }
    set_running_world(nullptr);
    return steps;
}

// World after world. The exit code: 0, or 1 for a violation or a case that was too rare; a replayed world is not judged by
// its coverage.
template <typename Sim>
int simulate(const Scope<Sim>& scope, const SimOptions& options, CoverageTable& coverage) {
    RunningWorld place{.scope = scope.name, .options = options, .operation = {}, .model = {}};
    try {
        place.world = options.replay_world.value_or(0);
        for (std::int64_t left = options.steps; left > 0; ++place.world) {
            const std::int64_t steps = run_world(scope, place, left, coverage);
            if (options.replay_world) return 0;
            coverage.end_world(steps);
            left -= steps;
        }
    } catch (const SimFailure& failure) {
        std::fprintf(stderr, "violation: %s\n", failure.what());
        return 1;
    }
    const bool enough = coverage.report();
    std::printf("steps=%lld violations=0\n", static_cast<long long>(options.steps));
    return enough ? 0 : 1;
}

}  // namespace ninfer::sim
