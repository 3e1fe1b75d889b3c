#pragma once

// What is counted of a transition: the ways that it took, and the phase in which it was aborted.

#include "tests/sim/program_sim.h"

namespace ninfer::sim {

// Of one that has ended.
void count_ways(ProgramSim& sim, const ModelTransition& transition);
// Of the open one, which was not being aborted before.
void count_abort(ProgramSim& sim);

}  // namespace ninfer::sim
