#include "tests/sim/recovery_model.h"

#include <algorithm>

namespace ninfer::sim {
namespace {

int common_beginning(const TokenList& left, const TokenList& right) {
    const auto ends = std::ranges::mismatch(left, right);
    return static_cast<int>(ends.in1 - left.begin());
}

}  // namespace

std::int64_t ModelRecovery::bytes(const ContextSizes& sizes) const {
    return pages * static_cast<std::int64_t>(sizes.page_bytes) +
           (image ? static_cast<std::int64_t>(sizes.image_bytes) : 0);
}

std::vector<ModelRecovery> RecoveryModel::all_of(Key checkpoint) const {
    const TokenList& wanted = before_.checkpoints.at(checkpoint).tokens;
    std::vector<ModelRecovery> ways{{}};
    for (const auto& [key, base] : after_.checkpoints) {
        const int same = common_beginning(wanted, base.tokens);
        // State at a frontier serves nobody who has other tokens before it; pages serve as far as the tokens go.
        const bool serves = same == base.frontier() || (same > 0 && !before_.has_images());
        if (serves && !base.awaits_image) ways.push_back(recovery_from(key, same));
    }
    return ways;
}

ModelRecovery RecoveryModel::recovery_from(Key base, int frontier) const {
    if (base == 0) return {};
    const CheckpointRecord& record = after_.checkpoints.at(base);
    const int pages = static_cast<int>(record.view.pages.size());
    const int below = pages_for(frontier);
    ModelRecovery way{.base = base, .base_frontier = frontier};
    way.pages = std::min(below, pages - after_.on_device(record.view, pages));
    way.pages_needed = below - after_.on_device(record.view, below);
    way.image = record.image != 0 && !after_.images.at(record.image).on_device;
    return way;
}

std::vector<ModelRecovery> RecoveryModel::best_of(Key checkpoint) const {
    auto ways = all_of(checkpoint);
    const auto cost = [&](const ModelRecovery& way) { return std::pair(-way.base_frontier, way.bytes(before_.sizes)); };
    std::ranges::stable_sort(ways, {}, cost);
    std::vector<ModelRecovery> best;
    for (const ModelRecovery& way : ways)
        if (best.empty() || way.bytes(before_.sizes) < best.back().bytes(before_.sizes)) best.push_back(way);
    return best;
}

}  // namespace ninfer::sim
