#pragma once

// The targets of one planning session, each once, however it was reached. A fixed number of degraded ones; identity and
// maximal targets, one each per option, always have a place. Nothing is released before the next session, and memory is
// used again.

#include <optional>
#include <span>
#include <vector>

#include "cpp/program/target_assessment.h"
#include "cpp/transaction/resource_target.h"

namespace ninfer {

// What a member of the domain wants, if not everything as it is.
struct TargetChange {
    std::int32_t member = 0;
    HoldingOutcome outcome;

    bool operator==(const TargetChange&) const = default;
};

struct PlannedTarget {
    std::int32_t option = 0;
    std::vector<TargetChange> changes;  // by member, each once; what leaves with the source is not among them
    std::optional<TargetAssessment> assessment;
};

class TargetArena {
   public:
    explicit TargetArena(std::int64_t most_degraded) : most_degraded_(most_degraded) {}

    void clear() noexcept { count_ = degraded_ = 0; }
    // The target with these changes, new or known. None: it would be one degraded target too many.
    std::optional<std::int64_t> add(std::int32_t option, std::span<const TargetChange> changes, bool degraded);

    PlannedTarget& at(std::int64_t index) { return targets_[static_cast<std::size_t>(index)]; }
    std::int64_t size() const noexcept { return count_; }
    std::int64_t most_degraded() const noexcept { return most_degraded_; }

   private:
    std::int64_t most_degraded_;
    std::vector<PlannedTarget> targets_;  // the first count_ of them
    std::int64_t count_ = 0;
    std::int64_t degraded_ = 0;
};

}  // namespace ninfer
