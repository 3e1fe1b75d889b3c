#pragma once

// The state of one Gated DeltaNet layer of one sequence (N-7 of docs/design/numerics.md), all f32:
//   recurrent    per value head h and column tile t: [key_dim][w_t], where the value columns are padded with zeros to a
//                multiple of 16 and cut into tiles of 32 (the last may be 16 wide); tile t of head h starts at
//                h · head_floats() + t · 32 · key_dim
//   convolution  [conv_width - 1][conv_channels], oldest token first: the raw inputs before the convolution
// An op reads `read` and writes `write`; both may be the same memory (InPlace) or disjoint (first step after a Fork).

#include <cstdint>

#include "cpp/base/inline.h"

namespace ninfer {

inline constexpr std::int64_t kStateTileColumns = 32;
inline constexpr std::int64_t kStateColumnPadding = 16;

struct RecurrentStateLayout {
    std::int64_t value_heads = 0;
    std::int64_t key_heads = 0;
    std::int64_t key_dim = 0;    // per head
    std::int64_t value_dim = 0;  // per head
    std::int64_t conv_width = 0;

    NINFER_INLINE std::int64_t padded_value_dim() const noexcept {
        return (value_dim + kStateColumnPadding - 1) / kStateColumnPadding * kStateColumnPadding;
    }
    NINFER_INLINE std::int64_t tiles() const noexcept {
        return (padded_value_dim() + kStateTileColumns - 1) / kStateTileColumns;
    }
    NINFER_INLINE std::int64_t tile_columns(std::int64_t tile) const noexcept {
        const std::int64_t left = padded_value_dim() - tile * kStateTileColumns;
        return left < kStateTileColumns ? left : kStateTileColumns;
    }
    NINFER_INLINE std::int64_t head_floats() const noexcept { return key_dim * padded_value_dim(); }
    NINFER_INLINE std::int64_t recurrent_floats() const noexcept { return value_heads * head_floats(); }
    NINFER_INLINE std::int64_t conv_channels() const noexcept {
        return 2 * key_heads * key_dim + value_heads * value_dim;
    }
    NINFER_INLINE std::int64_t conv_floats() const noexcept { return (conv_width - 1) * conv_channels(); }
};

struct RecurrentStateView {
    const float* read = nullptr;
    float* write = nullptr;
};

}  // namespace ninfer
