#pragma once

// The one transition of a program's resources that may be open. Functions over it: context_transaction.h.

#include <memory>
#include <vector>

#include "cpp/program/publication.h"
#include "cpp/program/resource_result.h"
#include "cpp/transaction/running_transaction.h"

namespace ninfer {

struct OpenTransaction {
    std::unique_ptr<RunningTransaction> running;
    // One per holding of the plan, as it is now; none once it is gone. The owner table says the same after each step.
    std::vector<CheckpointHandle> checkpoints;
    std::int32_t source = ResourceNeed::kNoHolding;  // index of the source of an admission
    bool consumes = false;                           // the source, at the commit
    Publication publication;
    std::int64_t computed = 0;     // as in ContextPlan
    bool changed_besides = false;  // by somebody else meanwhile: what was condemned before could be released
    std::vector<CheckpointHandle> removed;
    std::vector<ShortenedCheckpoint> shortened;
    std::vector<OwnerHandle> owners_gone;
};

}  // namespace ninfer
