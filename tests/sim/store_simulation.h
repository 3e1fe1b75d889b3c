#pragma once

// Scope "stores" of ninfer_sim: worlds of a few pages, slots and blocks, one after the other. In each, random operations
// on the stores and on the naive model, everything compared after each; at its end everything is released, and nothing may
// be left. A world depends only on the seed and its number, so one can be repeated alone.

#include <cstdint>

#include "tests/sim/sim_options.h"

namespace ninfer::sim {

// Exit code: 0, or 1 for a difference or a case that was met too rarely.
int simulate_stores(const SimOptions& options);

}  // namespace ninfer::sim
