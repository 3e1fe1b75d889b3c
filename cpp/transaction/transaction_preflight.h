#pragma once

// Whether a sealed plan still holds, before anything is changed.

#include "cpp/transaction/resource_plan.h"

namespace ninfer {

// Looks for all of the plan's holdings, and reads and projects again what it changes: costs the runs of those. kStaleRevision, kStaleHandle, kActive, and as
// ResourcePlan::seal; kStaleRevision too if the same target would now lead elsewhere, or if anything that the plan names
// is not where the plan found it. Else the projection as it is now.
Result<ResourceProjection, Refusal> preflight(const ResourcePlan& plan, const StateStores& stores,
                                              std::uint64_t revision);

}  // namespace ninfer
