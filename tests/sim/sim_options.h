#pragma once

// The command line of ninfer_sim.

#include <cstdint>
#include <optional>

namespace ninfer::sim {

struct SimOptions {
    std::uint64_t seed = 0;
    bool whole_program = false;  // scope all: a program's state; else its stores alone
    std::int64_t steps = 100'000;
    bool faults = true;                        // copies fail; without, they are only slow
    std::optional<std::int64_t> replay_world;  // run only this world, and print its operations
};

// Empty, with the usage on stderr, if the arguments are not understood.
std::optional<SimOptions> parse_sim_options(int count, char** arguments);

}  // namespace ninfer::sim
