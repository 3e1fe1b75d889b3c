#pragma once

#include "tests/sim/sim_context.h"

namespace ninfer::sim {

// A long chain that many beginnings are taken of, which go again in an order that is bad for whoever joins runs: from the
// root, towards it, from the middle, the long one first, or at random.
void fragment_space(SimContext& context);
bool any_long_space(SimContext& context);

}  // namespace ninfer::sim
