#include "cpp/ops/linear.h"

#include "cpp/ops/cpu/quantised_group.h"

namespace ninfer {

std::size_t linear_scratch_bytes(std::int64_t rows, std::int64_t in_features, WeightStorage storage) {
    // f32 weights read the input where it is. For the others the bound covers both preparations (quantised groups, and
    // rounded values that some instruction sets keep as f32), since one call may have targets of several storages.
    if (storage == WeightStorage::kF32) return 0;
    const auto groups = static_cast<std::size_t>((in_features + kQuantGroup - 1) / kQuantGroup);
    const std::size_t row_bytes =
        groups * (sizeof(QuantisedGroup) + static_cast<std::size_t>(kQuantGroup) * sizeof(float));
    constexpr std::size_t kAlignmentSlack = 2 * 64;
    return static_cast<std::size_t>(rows) * row_bytes + kAlignmentSlack;
}

}  // namespace ninfer
