#pragma once

#include "tests/sim/sim_options.h"

namespace ninfer::sim {

// Tries to break a program's state, model apart. The process's exit code.
int simulate_program(const SimOptions& options);

}  // namespace ninfer::sim
