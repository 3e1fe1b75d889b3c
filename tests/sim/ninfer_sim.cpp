// ninfer_sim: seeded simulation of the stores, or of a program's state, against a naive model (docs/testing.md).

#include <cstdio>

#include "tests/sim/program_simulation.h"
#include "tests/sim/sim_options.h"
#include "tests/sim/store_simulation.h"

int main(int count, char** arguments) {
    const auto options = ninfer::sim::parse_sim_options(count, arguments);
    if (!options) return 2;
    std::printf("seed=%llu\n", static_cast<unsigned long long>(options->seed));
    std::fflush(stdout);
    return options->whole_program ? ninfer::sim::simulate_program(*options) : ninfer::sim::simulate_stores(*options);
}
