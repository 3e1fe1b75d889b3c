#pragma once

// That chains of runs stay short: runs that were parted for somebody who is gone are joined again.

#include <vector>

#include "tests/sim/sim_context.h"

namespace ninfer::sim {

// Of a space that was just consumed or finished: a border is left only where who sees the pages differs.
void expect_joined_runs(SimContext& context, SpaceId space);
// The same, for whoever sees them, of the pages that a space shared which was just released, up to the first one that not
// all of them see. The room of an active space that goes on in a run of its own is left alone.
void expect_joined_after_release(SimContext& context, const std::vector<PageKey>& released);
// Of all spaces together: a run ends where a space does, or where two part; and an active one may have one of its own.
void expect_few_runs(SimContext& context);

}  // namespace ninfer::sim
