#pragma once

// A sealed target of a planning session: what happens to the stores, which checkpoints that concerns, and what is published
// in the end. Move-only, bound to the revision of its session, used up by one start.

#include <vector>

#include "cpp/program/publication.h"
#include "cpp/transaction/resource_plan.h"

namespace ninfer {

struct ContextPlan {
    ResourcePlan resources;
    std::vector<CheckpointHandle> checkpoints;  // one per holding of `resources`
    Publication publication;
    std::int64_t computed = 0;  // of the sequence that is captured or finished, when the plan was sealed
};

}  // namespace ninfer
