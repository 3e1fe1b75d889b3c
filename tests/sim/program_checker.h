#pragma once

// Compares a whole program's state with the model: who there is, what each holds, where it lies, and every byte.

#include "tests/sim/program_sim.h"

namespace ninfer::sim {

// SimFailure at the first difference; an assertion of the state's own invariants ends the process.
void check_program(ProgramSim& sim);

}  // namespace ninfer::sim
