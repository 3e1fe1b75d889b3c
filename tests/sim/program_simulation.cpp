#include "tests/sim/program_simulation.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <numeric>

#include "tests/sim/placement_operations.h"
#include "tests/sim/planning_operations.h"
#include "tests/sim/planning_problem.h"
#include "tests/sim/program_checker.h"
#include "tests/sim/sequence_operations.h"
#include "tests/sim/world_loop.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

constexpr int kStepsPerWorld = 1000;
constexpr std::int64_t kSituationsPerMillionSteps = 20;
constexpr int kPollsToDrain = 10'000;

bool always(ProgramSim&) { return true; }
bool is_open(ProgramSim& sim) { return sim.model.transition.has_value(); }
bool computes(ProgramSim& sim) {
    return std::ranges::any_of(sim.model.sequences, [&](const auto& item) {
        return item.second.copy_failed || can_compute(sim, item.second);
    });
}
bool captures(ProgramSim& sim) {
    return std::ranges::any_of(sim.model.sequences, [&](const auto& item) {
        return !no_capture(sim, item.first, Tier::kDevice) || !no_capture(sim, item.first, Tier::kHost);
    });
}
bool finishes(ProgramSim& sim) {
    return std::ranges::any_of(sim.model.sequences, [&](const auto& item) {
        return !no_finish(sim, item.first, Tier::kDevice) || !no_finish(sim, item.first, Tier::kHost);
    });
}
bool closes(ProgramSim& sim) {
    return !is_open(sim) && std::ranges::any_of(sim.model.sequences, [&](const auto& item) {
        return item.second.waits > 0 || item.second.computed == item.second.reserved;
    });
}
bool has_checkpoints(ProgramSim& sim) { return !is_open(sim) && !sim.model.checkpoints.empty(); }
bool has_many(ProgramSim& sim) { return !is_open(sim) && sim.model.checkpoints.size() > 5; }
bool has_lanes(ProgramSim& sim) { return !is_open(sim) && std::ssize(sim.model.sequences) < sim.sizes.lanes; }
bool can_open(ProgramSim& sim) { return has_lanes(sim) && has_checkpoints(sim); }
bool has_jobs(ProgramSim& sim) { return !sim.model.jobs.empty(); }
bool has_copies(ProgramSim& sim) {
    return has_jobs(sim) || !sim.model.draining.empty() || !sim.model.transition_copies.empty();
}
bool has_plans(ProgramSim& sim) { return !sim.plans.empty() && !sim.model.transition; }
bool can_plan(ProgramSim& sim) { return !not_serial(sim); }

bool can_exhaust(ProgramSim& sim) { return can_plan(sim) && has_many(sim); }

struct Operation {
    const char* name;
    int weight;
    void (*run)(ProgramSim&);
    bool (*useful)(ProgramSim&);  // whether it has anything to work on
};

constexpr Operation kOperations[] = {
    {"sequence.open_root", 30, open_root_sequence, has_lanes},
    {"sequence.open_from", 30, open_sequence_from, can_open},
    {"sequence.unit", 110, run_sequence_unit, computes},
    {"sequence.capture", 70, capture_sequence, captures},
    {"sequence.finish", 60, finish_sequence, finishes},
    {"sequence.close", 12, close_one_sequence, closes},
    {"checkpoint.start_copy", 70, start_checkpoint_copy, has_checkpoints},
    {"checkpoint.drop", 80, drop_checkpoint_replicas, has_checkpoints},
    {"checkpoint.delete", 12, delete_one_checkpoint, has_many},
    {"checkpoint.release_owner", 10, release_one_owner, has_many},
    {"checkpoint.cancel_copies", 12, cancel_checkpoint_copies, has_jobs},
    {"copy.poll", 200, poll_program_copies, has_copies},
    {"plan.make", 320, plan_transition, can_plan},
    {"plan.exhaust", 14, exhaust_session, can_exhaust},
    {"plan.ask_old", 8, ask_old_session, always},
    {"plan.start", 20, start_plan, has_plans},
    {"plan.advance", 12, advance_plan, is_open},
    {"plan.step", 160, step_plan, is_open},
    {"plan.cancel", 14, cancel_plan, is_open},
    {"backfill.prove", 10, ask_backfill, always},
};

constexpr RefusalKind kKinds[] = {kStaleHandle,     kNoLane,       kNoPages,      kOverContext,    kOverReservation,
                                  kBatchSize,       kNoImageSlots, kNoHostBlocks, kBeyondFrontier, kBackwards,
                                  kNotOnDevice,     kNoReplica,    kLastReplica,  kPinned,         kShared,
                                  kActive,          kUnsettled,    kCopyInFlight, kCopyFailed,     kStaleRevision,
                                  kTransactionOpen, kNoTargets,    kMismatch};

// Where the simulation is, for a failure and for an assertion, which ends the process.
struct Place {
    SimOptions options;
    std::int64_t world = 0;
    std::int64_t step = 0;
    const ProgramSim* sim = nullptr;
};
Place place;

void print_place() {
    std::fprintf(stderr, "ninfer_sim: seed %llu, world %lld, step %lld: %s\n",
                 static_cast<unsigned long long>(place.options.seed), static_cast<long long>(place.world),
                 static_cast<long long>(place.step), place.sim == nullptr ? "" : place.sim->story());
    std::fprintf(stderr, "repeat it with: ninfer_sim --scope all --seed %llu --steps %lld --faults %s --replay %lld\n",
                 static_cast<unsigned long long>(place.options.seed), static_cast<long long>(place.options.steps),
                 place.options.faults ? "on" : "off", static_cast<long long>(place.world));
}

extern "C" void print_program_at_abort(int) {
    if (place.sim != nullptr) std::fprintf(stderr, "the model:\n%s", place.sim->model.text().c_str());
    print_place();
}

// Each world does some things more often than others.
std::vector<int> draw_weights(ProgramSim& sim) {
    constexpr int kFactors[] = {1, 4, 4, 10};
    std::vector<int> weights;
    for (const Operation& operation : kOperations) weights.push_back(operation.weight * kFactors[sim.random.below(4)]);
    return weights;
}

int draw_operation(ProgramSim& sim, const std::vector<int>& weights) {
    const int sum = std::accumulate(weights.begin(), weights.end(), 0);
    for (;;) {
        int left = sim.random.below(sum);
        std::size_t chosen = 0;
        while (left >= weights[chosen]) left -= weights[chosen++];
        if (kOperations[chosen].useful(sim) || sim.random.percent(4)) return static_cast<int>(chosen);
    }
}

template <typename Map>
std::vector<Key> keys_of(const Map& map) {
    std::vector<Key> keys;
    for (const auto& [key, item] : map) keys.push_back(key);
    return keys;
}

// Ends everything; nothing may be left.
void tear_down(ProgramSim& sim) {
    sim.stop_counting();
    if (sim.model.transition) cancel_plan(sim);
    for (int i = 0; i < kPollsToDrain && sim.model.transition; ++i) {
        poll_program_copies(sim, SIZE_MAX / 2);
        advance_plan(sim);
    }
    check_program(sim);
    for (const Key key : keys_of(sim.model.sequences)) close_one_sequence(sim, key);
    for (int i = 0; i < kPollsToDrain && has_copies(sim); ++i) poll_program_copies(sim, SIZE_MAX / 2);
    check_program(sim);
    for (const Key key : keys_of(sim.model.owners)) release_one_owner(sim, key);
    poll_program_copies(sim, 0);
    check_program(sim);
    if (!(sim.state->stores.copies().used() == UsedVector{})) throw SimFailure("something is left of an empty world");
    expect_equal(std::int64_t{0}, sim.state->stores.ledgers().ledger_count(), "ledgers of an empty world");
}

// Returns the steps done, at most steps_left.
std::int64_t run_world(const SimOptions& options, std::int64_t world, std::int64_t steps_left,
                       CoverageTable& coverage) {
    ProgramSim sim(mix(options.seed) ^ mix(static_cast<std::uint64_t>(world) + 1), options.faults, coverage);
    sim.set_first_part(static_cast<int>(std::size(kOperations)));
    place = {options, world, 0, &sim};
    const std::vector<int> weights = draw_weights(sim);
    const std::int64_t steps = std::min<std::int64_t>(kStepsPerWorld, steps_left);
    try {
        for (; place.step < steps; ++place.step) {
            const int operation = draw_operation(sim, weights);
            sim.begin(operation);
            kOperations[operation].run(sim);
            if (options.replay_world) std::printf("%lld: %s\n", static_cast<long long>(place.step), sim.story());
            check_program(sim);
        }
        tear_down(sim);
    } catch (...) {
        std::fprintf(stderr, "the model:\n%s", sim.model.text().c_str());
        print_place();
        place.sim = nullptr;
        throw;
    }
    place.sim = nullptr;
    return steps;
}

CoverageTable::Cases cases(bool faults) {
    CoverageTable::Cases all;
    for (const Operation& operation : kOperations) all.operations.emplace_back(operation.name);
    const auto parts = part_operation_names();
    all.operations.insert(all.operations.end(), parts.begin(), parts.end());
    all.kinds.assign(std::begin(kKinds), std::end(kKinds));
    all.situations = program_situation_names(faults);
    all.situations_per_million_steps = kSituationsPerMillionSteps;
    if (!faults) std::erase(all.kinds, kCopyFailed);
    return all;
}

}  // namespace

int simulate_program(const SimOptions& options) {
    CoverageTable coverage(cases(options.faults));
    std::signal(SIGABRT, print_program_at_abort);
    return run_worlds(options, coverage, [&](std::int64_t world, std::int64_t steps) {
        return run_world(options, world, steps, coverage);
    });
}

}  // namespace ninfer::sim
