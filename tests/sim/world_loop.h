#pragma once

// World after world of either scope, and how the program ends.

#include <cstdint>

#include "cpp/base/function_ref.h"
#include "tests/sim/coverage_table.h"
#include "tests/sim/sim_options.h"

namespace ninfer::sim {

// run_world(world, most steps) returns the steps that it made and throws SimFailure. The exit code: 0, or 1 for a violation
// or a case that was too rare; a replayed world is not judged by its coverage.
int run_worlds(const SimOptions& options, const CoverageTable& coverage,
               FunctionRef<std::int64_t(std::int64_t, std::int64_t)> run_world);

}  // namespace ninfer::sim
