// RMS norm fused with the residual addition, at the width of a 0.8B model.

#include "bench/support/row_op_bench.h"

int main(int argc, char** argv) {
    using namespace ninfer;
    static constexpr std::int64_t kColumns = 1024;
    // Reads input and residual, writes residual and output.
    return bench::bench_row_op(
        argc, argv, "rms_norm + residual, 1024 columns", 4 * 4 * kColumns, [&](std::int64_t rows) {
            return [input = bench::RandomMatrix(rows, kColumns), residual = bench::RandomMatrix(rows, kColumns),
                    output = bench::RandomMatrix(rows, kColumns),
                    weight = bench::RandomMatrix(1, kColumns)](const OpTable& ops, OpContext& context) mutable {
                ops.rms_norm(context, {input.view(), residual.view(), weight.data(), 1e-6F, output.view()});
            };
        });
}
