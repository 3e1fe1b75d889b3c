#pragma once

// Compares everything that the stores say with the model, and every byte that anybody could read, after each step. Learns
// from the stores what only they can know: the handles of new pages, and which epoch stands for which content.

#include "tests/sim/sim_context.h"

namespace ninfer::sim {

// Throws SimFailure at the first difference.
void check_stores(SimContext& context);

}  // namespace ninfer::sim
