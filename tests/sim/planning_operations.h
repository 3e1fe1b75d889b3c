#pragma once

// Operations on planning sessions and plans, and the transitions that follow from them.

#include "tests/sim/program_sim.h"

namespace ninfer::sim {

// A session from its opening to a sealed plan: targets, steps down, assessments.
void plan_transition(ProgramSim& sim);
// Steps down until no target more may be made.
void exhaust_session(ProgramSim& sim);
// A session, or a target, of an earlier time.
void ask_old_session(ProgramSim& sim);
void ask_backfill(ProgramSim& sim);

void start_plan(ProgramSim& sim);
void advance_plan(ProgramSim& sim);
void step_plan(ProgramSim& sim);
void cancel_plan(ProgramSim& sim);

// A capture or a finish that waits for somebody else's copies, and whose sequence goes on meanwhile: it is skipped.
void overtake_publication(ProgramSim& sim);

// Without drawing.
void start_plan(ProgramSim& sim, WaitingPlan waiting);
// What may come right after the start, too: its sequence goes on, or it is cancelled.
void begin_transition(ProgramSim& sim, WaitingPlan waiting);
// Its sequence goes on; then nobody cancels, so that the transition ends, if its copies arrive.
void overtake(ProgramSim& sim, const Publication& publication);
// The sequence that is to be captured or finished computes meanwhile, so that it is not. False: there is none that can.
bool go_on_with_published(ProgramSim& sim, const Publication& publication);

}  // namespace ninfer::sim
