#include "cpp/ops/gated_delta_rule.h"

#include "cpp/base/assert.h"

namespace ninfer {

namespace {

constexpr std::size_t kScratchAlignment = 64;

std::size_t aligned_bytes(std::int64_t floats) {
    NINFER_ASSERT_LE(0, floats);
    const std::size_t bytes = static_cast<std::size_t>(floats) * sizeof(float);
    return (bytes + kScratchAlignment - 1) / kScratchAlignment * kScratchAlignment;
}

}  // namespace

std::size_t gated_delta_rule_scratch_bytes(std::int64_t rows, const RecurrentStateLayout& layout) {
    // Normalised q and k of every key head, decay and beta of every value head.
    return aligned_bytes(2 * rows * layout.key_heads * layout.key_dim) + aligned_bytes(2 * rows * layout.value_heads);
}

}  // namespace ninfer
