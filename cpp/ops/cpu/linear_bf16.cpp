#include "cpp/ops/cpu/linear_kernels.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

struct Bf16Kernel {
    static constexpr std::size_t kPanels = kDotLanes == 16 ? 2 : 1;
    static constexpr std::size_t kMaxRows = kDotLanes == 16 ? 8 : kDotLanes == 8 ? 4 : 2;

    template <std::size_t kRows, std::size_t kTilePanels>
    static void tile(const LinearBlock& tile) {
        constexpr std::size_t kVectors = kTilePanels * kPanelVectors;
        FloatTile<kRows, kVectors> acc;
        clear_tile(acc);

        for (std::size_t pair = 0; pair < tile.steps; ++pair) {
            const auto offset = pair * kPanelOutputs * 4;
            Bf16Weights weights[kVectors];
#pragma GCC unroll 16
            for (std::size_t v = 0; v < kVectors; ++v) {
                const std::byte* const p = vector_weights(tile, v) + offset;
                prefetch_weights(p, v);
                weights[v] = load_bf16_weights(p);
            }
#pragma GCC unroll 16
            for (std::size_t r = 0; r < kRows; ++r) {
                const Bf16Pair inputs = load_bf16_pair(input_row<Bf16Input>(tile, r) + 2 * pair);
#pragma GCC unroll 16
                for (std::size_t v = 0; v < kVectors; ++v) acc.at[r][v] = bf16_dot(acc.at[r][v], weights[v], inputs);
            }
        }
        store_tile(tile, acc);
    }
};

}  // namespace

void linear_bf16(const LinearBlock& block) { for_each_tile<Bf16Kernel>(block); }

}  // namespace ninfer::NINFER_ISA_NAMESPACE
