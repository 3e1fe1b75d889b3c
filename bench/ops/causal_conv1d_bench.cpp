// The causal convolution of Gated DeltaNet: 6144 channels, width 4, one sequence.

#include "bench/support/row_op_bench.h"

int main(int argc, char** argv) {
    using namespace ninfer;
    static constexpr std::int64_t kChannels = 6144;
    static constexpr std::int64_t kWidth = 4;
    return bench::bench_row_op(argc, argv, "causal_conv1d, 6144 channels", 2 * 4 * kChannels, [&](std::int64_t rows) {
        return [rows, input = bench::RandomMatrix(rows, kChannels), output = bench::RandomMatrix(rows, kChannels),
                weight = bench::RandomMatrix(kWidth, kChannels),
                history = bench::RandomMatrix(kWidth - 1, kChannels)](const OpTable& ops, OpContext& context) mutable {
            const ConvSegment segment{{0, rows, 0}, history.data(), history.data()};
            ops.causal_conv1d(context, {input.view(), weight.data(), kWidth, output.view(), &segment, 1});
        };
    });
}
