#pragma once

// Where the simulation is: printed when it stops at a failure, or at an assertion of the product, which ends the process.

#include <cstdint>
#include <functional>
#include <string>

#include "tests/sim/sim_options.h"

namespace ninfer::sim {

struct RunningWorld {
    const char* scope = "";
    SimOptions options;
    std::int64_t world = 0;
    std::int64_t step = 0;
    std::function<std::string()> operation;  // the one that is tried now, and its arguments
    std::function<std::string()> model;      // as text

    void print() const;
};

// Which world is printed at an abort; nullptr: none.
void set_running_world(const RunningWorld* world);

}  // namespace ninfer::sim
