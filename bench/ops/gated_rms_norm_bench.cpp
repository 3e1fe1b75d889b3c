// The gated norm after Gated DeltaNet: 16 heads of 128.

#include "bench/support/row_op_bench.h"

int main(int argc, char** argv) {
    using namespace ninfer;
    static constexpr std::int64_t kHeads = 16;
    static constexpr std::int64_t kHeadDim = 128;
    static constexpr std::int64_t kColumns = kHeads * kHeadDim;
    return bench::bench_row_op(argc, argv, "gated_rms_norm, 16 heads of 128", 3 * 4 * kColumns, [&](std::int64_t rows) {
        return [input = bench::RandomMatrix(rows, kColumns), gate = bench::RandomMatrix(rows, kColumns),
                output = bench::RandomMatrix(rows, kColumns),
                weight = bench::RandomMatrix(1, kHeadDim)](const OpTable& ops, OpContext& context) mutable {
            ops.gated_rms_norm(context,
                               {input.view(), gate.view(), weight.data(), 1e-6F, kHeads, kHeadDim, output.view()});
        };
    });
}
