#include "cpp/program/target_arena.h"

#include <algorithm>

namespace ninfer {

std::optional<std::int64_t> TargetArena::add(std::int32_t option, std::span<const TargetChange> changes,
                                             bool degraded) {
    for (std::int64_t i = 0; i < count_; ++i)
        if (at(i).option == option && std::ranges::equal(at(i).changes, changes)) return i;
    if (degraded && degraded_ == most_degraded_) return std::nullopt;
    if (count_ == std::ssize(targets_)) targets_.emplace_back();
    PlannedTarget& target = at(count_);
    target.option = option;
    target.changes.assign(changes.begin(), changes.end());
    target.assessment.reset();
    degraded_ += degraded ? 1 : 0;
    return count_++;
}

}  // namespace ninfer
