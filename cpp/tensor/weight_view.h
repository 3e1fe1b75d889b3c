#pragma once

// A packed weight matrix W[out_features, in_features], the only form in which ops read weights. One layout serves every
// instruction set, because lanes are always output features (N-3 of docs/design/numerics.md).
//
// Panels of 16 consecutive output features, padded with zero weights to a whole panel; every panel starts at a multiple
// of 64 bytes and is panel_bytes long. Inputs are padded with zeros to the group size (1, 2, 32, 32). Inside a panel:
//   f32   [in][16] float
//   bf16  [in/2][16][2] bfloat16: lane o holds inputs 2i and 2i+1 of output o
//   q8    quants [in/32][8][16][4] int8: vector j, lane o, byte b is input 32g + 4j + b of output o;
//         then scales [in/32][16] f16. w = scale · q. 34 bytes per 32 weights.
//   q4    quants [in/32][4][16][4] uint8: the low nibble of vector j, lane o, byte b is input 32g + 4j + b, the high
//         nibble input 32g + 16 + 4j + b; then [in/32][2][16] f16: scales, minima. w = scale · q + minimum. 20 bytes
//         per 32.

#include <cstddef>
#include <cstdint>

#include "cpp/base/inline.h"
#include "cpp/tensor/dtype.h"

namespace ninfer {

inline constexpr std::int64_t kPanelOutputs = 16;
inline constexpr std::int64_t kQuantGroup = 32;

struct WeightView {
    const std::byte* data = nullptr;
    WeightStorage storage = WeightStorage::kF32;
    std::int64_t out_features = 0;
    std::int64_t in_features = 0;

    NINFER_INLINE std::int64_t panels() const noexcept { return (out_features + kPanelOutputs - 1) / kPanelOutputs; }
    std::int64_t padded_in_features() const noexcept;
    // Bytes of the quants part of a panel (all of it for f32 and bf16); the scales part begins there.
    std::size_t quant_bytes() const noexcept;
    std::size_t panel_bytes() const noexcept;
    NINFER_INLINE std::size_t total_bytes() const noexcept {
        return static_cast<std::size_t>(panels()) * panel_bytes();
    }
    NINFER_INLINE const std::byte* panel(std::int64_t index) const noexcept {
        return data + static_cast<std::size_t>(index) * panel_bytes();
    }
};

}  // namespace ninfer
