#pragma once

// The part of a linear op that one thread computes at a time, and how it is cut into register tiles. Only for the
// per-instruction-set sources linear_<storage>.cpp.

#include <cstddef>
#include <cstdint>

#include "cpp/ops/cpu/simd/dot.h"
#include "cpp/tensor/weight_view.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

// Rows × panels of one target. Also describes a single tile of it, whose row and panel counts are template arguments.
struct LinearBlock {
    const std::byte* weights;  // first panel
    std::size_t panel_bytes;
    std::size_t scales_offset;  // of a panel's scales, from its begin
    std::size_t panel_count;
    const std::byte* input;  // first row, prepared for the storage
    std::size_t input_row_bytes;
    std::size_t row_count;
    std::size_t steps;  // inputs, pairs or groups of 32, as the storage counts
    float* output;      // first row and column
    std::int64_t output_stride;
    std::int64_t columns;  // outputs that exist, <= 16 · panel_count
};

void linear_f32(const LinearBlock& block);
void linear_bf16(const LinearBlock& block);
void linear_q8(const LinearBlock& block);
void linear_q4(const LinearBlock& block);

// Accumulators of a tile: kVectors vectors of outputs for each of kRows rows.
template <std::size_t kRows, std::size_t kVectors>
struct FloatTile {
    FloatLanes at[kRows][kVectors];
};

template <std::size_t kRows, std::size_t kVectors>
NINFER_INLINE void clear_tile(FloatTile<kRows, kVectors>& acc) {
#pragma GCC unroll 16
    for (std::size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 16
        for (std::size_t v = 0; v < kVectors; ++v) acc.at[r][v] = lanes_zero();
}

template <std::size_t kRows, std::size_t kVectors>
NINFER_INLINE void store_tile(const LinearBlock& tile, const FloatTile<kRows, kVectors>& acc) {
#pragma GCC unroll 16
    for (std::size_t r = 0; r < kRows; ++r)
#pragma GCC unroll 16
        for (std::size_t v = 0; v < kVectors; ++v) {
            const auto first = static_cast<std::int64_t>(v * kDotLanes);
            const auto lanes = static_cast<std::int64_t>(kDotLanes);
            const std::int64_t left = tile.columns - first;
            float* const output = tile.output + static_cast<std::int64_t>(r) * tile.output_stride + first;
            if (left >= lanes)
                lanes_store(output, acc.at[r][v]);
            else if (left > 0)
                lanes_store_n(output, acc.at[r][v], left);
        }
}

// Where vector v of a tile's weights begins; of every 64 bytes of a panel, a vector has kDotLanes · 4.
NINFER_INLINE const std::byte* vector_weights(const LinearBlock& tile, std::size_t v) {
    return tile.weights + v / kPanelVectors * tile.panel_bytes + v % kPanelVectors * kDotLanes * 4;
}
// Asks for the cache line of vector v's weights that is used a few groups later. Panels follow each other in memory, so
// the same distance leads from the end of one into the next; hardware prefetchers stop at pages and miss that.
NINFER_INLINE void prefetch_weights(const std::byte* weights, std::size_t v) {
    constexpr std::size_t kDistance = 4096;
    if (v % kPanelVectors == 0) __builtin_prefetch(weights + kDistance);
}
// Where the scales of vector v begin; an output has 2 bytes there.
NINFER_INLINE const std::uint16_t* vector_scales(const LinearBlock& tile, std::size_t v) {
    const std::byte* const panel = tile.weights + v / kPanelVectors * tile.panel_bytes;
    return reinterpret_cast<const std::uint16_t*>(panel + tile.scales_offset) + v % kPanelVectors * kDotLanes;
}
template <typename T>
NINFER_INLINE const T* input_row(const LinearBlock& tile, std::size_t r) {
    return reinterpret_cast<const T*>(tile.input + r * tile.input_row_bytes);
}

// Calls Kernel::tile<rows, panels> for `rows` in 1 .. kMaxRows.
template <typename Kernel, std::size_t kPanels, std::size_t kRows = Kernel::kMaxRows>
NINFER_INLINE void dispatch_tile(const LinearBlock& tile, std::size_t rows) {
    if constexpr (kRows > 1) {
        if (rows < kRows) return dispatch_tile<Kernel, kPanels, kRows - 1>(tile, rows);
    }
    Kernel::template tile<kRows, kPanels>(tile);
}

// All tiles of a block. Rows are cut as evenly as possible into tiles of at most kMaxRows, so that few tiles are small;
// how they are cut cannot change a result, since every accumulator belongs to one output.
template <typename Kernel>
NINFER_INLINE void for_each_row_tile(const LinearBlock& block, LinearBlock tile, bool full) {
    std::size_t tiles_left = (block.row_count + Kernel::kMaxRows - 1) / Kernel::kMaxRows;
    for (std::size_t row = 0; row < block.row_count; --tiles_left) {
        const std::size_t rows = (block.row_count - row + tiles_left - 1) / tiles_left;
        if (full)
            dispatch_tile<Kernel, Kernel::kPanels>(tile, rows);
        else
            dispatch_tile<Kernel, 1>(tile, rows);
        tile.input += rows * block.input_row_bytes;
        tile.output += static_cast<std::int64_t>(rows) * block.output_stride;
        row += rows;
    }
}

template <typename Kernel>
NINFER_INLINE void for_each_tile(const LinearBlock& block) {
    for (std::size_t panel = 0; panel < block.panel_count;) {
        const bool full = panel + Kernel::kPanels <= block.panel_count;
        LinearBlock tile = block;
        tile.weights = block.weights + panel * block.panel_bytes;
        tile.output = block.output + panel * kPanelOutputs;
        tile.columns = block.columns - static_cast<std::int64_t>(panel) * kPanelOutputs;
        for_each_row_tile<Kernel>(block, tile, full);
        panel += full ? Kernel::kPanels : 1;
    }
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
