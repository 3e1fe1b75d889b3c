#include "cpp/ops/cpu/linear_kernels.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

struct F32Kernel {
    static constexpr std::size_t kPanels = kDotLanes == 16 ? 2 : 1;
    static constexpr std::size_t kMaxRows = kDotLanes == 16 ? 8 : kDotLanes == 8 ? 6 : 2;

    template <std::size_t kRows, std::size_t kTilePanels>
    static void tile(const LinearBlock& tile) {
        constexpr std::size_t kVectors = kTilePanels * kPanelVectors;
        FloatTile<kRows, kVectors> acc;
        clear_tile(acc);

        for (std::size_t i = 0; i < tile.steps; ++i) {
            const auto offset = i * kPanelOutputs * sizeof(float);
            FloatLanes weights[kVectors];
#pragma GCC unroll 16
            for (std::size_t v = 0; v < kVectors; ++v) {
                const std::byte* const p = vector_weights(tile, v) + offset;
                prefetch_weights(p, v);
                weights[v] = lanes_load(reinterpret_cast<const float*>(p));
            }
#pragma GCC unroll 16
            for (std::size_t r = 0; r < kRows; ++r) {
                const FloatLanes input = lanes_set1(input_row<float>(tile, r)[i]);
#pragma GCC unroll 16
                for (std::size_t v = 0; v < kVectors; ++v) acc.at[r][v] = lanes_fma(input, weights[v], acc.at[r][v]);
            }
        }
        store_tile(tile, acc);
    }
};

}  // namespace

void linear_f32(const LinearBlock& block) { for_each_tile<F32Kernel>(block); }

}  // namespace ninfer::NINFER_ISA_NAMESPACE
