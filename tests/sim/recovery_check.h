#pragma once

// What a planning session tells about recoveries (cpp/program/recovery_recipes.h), compared with the model's.

#include <span>

#include "tests/sim/planning_problem.h"
#include "tests/sim/program_sim.h"

namespace ninfer::sim {

// A target of the open session, and what the model calls it.
struct KnownTarget {
    TargetId id;
    const ModelTarget* target = nullptr;
};

// Asks about these targets together: rows are there for every checkpoint that the target changes, and for every one whose
// ways are others than in the identity; they are the model's best ways, and each can be gone as it is told.
void check_recoveries(ProgramSim& sim, const PlanningProblem& problem, std::span<const KnownTarget> targets);
// The same of all checkpoints in an option's identity.
void check_baseline(ProgramSim& sim, const PlanningProblem& problem, int option);

}  // namespace ninfer::sim
