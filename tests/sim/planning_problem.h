#pragma once

// One planning problem as the model sees it: the publications among which is chosen, what each needs, who may be touched,
// and what a step down does.

#include "tests/sim/model_transition.h"
#include "tests/sim/program_sim.h"

namespace ninfer::sim {

struct PlanningProblem {
    std::vector<Publication> options;
    // One per option, if the session can be opened: what it needs, or why it is left out.
    std::vector<ModelNeed> needs;
    std::vector<Expected> left_out;
    std::vector<Key> protected_owners;

    bool is_protected(Key owner) const;
};

// Draws options: an admission's candidates, checked on the way, captures, finishes, or nothing.
PlanningProblem draw_problem(ProgramSim& sim);
// Only a capture, or a finish, of a sequence that can go on.
PlanningProblem draw_publication(ProgramSim& sim);

// Why the publication has no need; else the need.
Expected find_need(const ProgramSim& sim, const Publication& publication, ModelNeed& need);
// Fills `needs` and `left_out`, if the session can be opened.
Expected no_opening(const ProgramSim& sim, PlanningProblem& problem);

// Why no plan may start now, whatever it is.
Expected not_serial(const ProgramSim& sim);
// The same of one that may have no stages at all.
Expected not_startable(const ProgramSim& sim, const ModelNeed& need, const ModelTarget& target);
// Why the publication can never be made here, and why not now, stores apart.
Expected not_alone(const ProgramSim& sim, const Publication& publication);
Expected not_placed(const ProgramSim& sim, const Publication& publication);
// Why a projection cannot be carried out, pins apart.
Expected does_not_fit(const ProgramSim& sim, const ModelProjection& projection);

// Takes the step in the target, or says why not.
Expected step_down(const ProgramSim& sim, const PlanningProblem& problem, ModelTarget& target, const Degradation& step);
// Whether somebody's checkpoints may be changed at all.
bool is_eligible(const ProgramSim& sim, const PlanningProblem& problem, Key owner);
ModelTarget maximal_target(const ProgramSim& sim, const PlanningProblem& problem, int option);

}  // namespace ninfer::sim
