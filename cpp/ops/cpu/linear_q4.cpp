#include "cpp/ops/cpu/linear_kernels.h"
#include "cpp/ops/cpu/quantised_group.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

// The integer sums of a group live in registers; float accumulators may spill, which costs little once per group.
struct Q4Kernel {
    static constexpr std::size_t kPanels = kDotLanes == 16 ? 2 : 1;
    static constexpr std::size_t kMaxRows = kDotLanes == 16 ? 8 : kDotLanes == 8 ? 4 : 2;

    template <std::size_t kRows, std::size_t kTilePanels>
    static void tile(const LinearBlock& tile) {
        constexpr std::size_t kVectors = kTilePanels * kPanelVectors;
        constexpr std::size_t kVectorStride = kPanelOutputs * 4;
        FloatTile<kRows, kVectors> acc;
        clear_tile(acc);

        for (std::size_t group = 0; group < tile.steps; ++group) {
            const std::size_t offset = group * 4 * kVectorStride;
            const QuantisedGroup* inputs[kRows];
            IntLanes sums[kRows][kVectors];
#pragma GCC unroll 16
            for (std::size_t r = 0; r < kRows; ++r) {
                inputs[r] = input_row<QuantisedGroup>(tile, r) + group;
#pragma GCC unroll 16
                for (std::size_t v = 0; v < kVectors; ++v) sums[r][v] = q4_start();
            }
#pragma GCC unroll 4
            for (std::size_t j = 0; j < 4; ++j) {
                Q4Weights weights[kVectors];
#pragma GCC unroll 16
                for (std::size_t v = 0; v < kVectors; ++v) {
                    const std::byte* const p = vector_weights(tile, v) + offset + j * kVectorStride;
                    prefetch_weights(p, v);
                    weights[v] = load_q4_weights(p);
                }
#pragma GCC unroll 16
                for (std::size_t r = 0; r < kRows; ++r) {
                    const Quad low = load_quad(inputs[r]->values + 4 * j);
                    const Quad high = load_quad(inputs[r]->values + 16 + 4 * j);
#pragma GCC unroll 16
                    for (std::size_t v = 0; v < kVectors; ++v)
                        sums[r][v] = q4_dot(q4_dot(sums[r][v], weights[v].low, low), weights[v].high, high);
                }
            }
#pragma GCC unroll 16
            for (std::size_t v = 0; v < kVectors; ++v) {
                const std::uint16_t* const scales = vector_scales(tile, v) + 2 * group * kPanelOutputs;
                const FloatLanes scale = lanes_load_f16(scales);
                const FloatLanes minimum = lanes_load_f16(scales + kPanelOutputs);
#pragma GCC unroll 16
                for (std::size_t r = 0; r < kRows; ++r) {
                    acc.at[r][v] =
                        lanes_fma(q4_sum(sums[r][v]), lanes_mul(scale, lanes_set1(inputs[r]->scale)), acc.at[r][v]);
                    acc.at[r][v] = lanes_fma(minimum, lanes_set1(inputs[r]->scaled_sum), acc.at[r][v]);
                }
            }
        }
        store_tile(tile, acc);
    }
};

}  // namespace

void linear_q4(const LinearBlock& block) { for_each_tile<Q4Kernel>(block); }

}  // namespace ninfer::NINFER_ISA_NAMESPACE
