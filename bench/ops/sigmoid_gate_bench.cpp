// The output gate of gated attention: 8 heads of 256, gate interleaved with the query.

#include "bench/support/row_op_bench.h"

int main(int argc, char** argv) {
    using namespace ninfer;
    static constexpr std::int64_t kHeads = 8;
    static constexpr std::int64_t kHeadDim = 256;
    static constexpr std::int64_t kColumns = kHeads * kHeadDim;
    // Reads values and gate, writes values.
    return bench::bench_row_op(argc, argv, "sigmoid_gate, 8 heads of 256", 3 * 4 * kColumns, [&](std::int64_t rows) {
        return [values = bench::RandomMatrix(rows, kColumns), query = bench::RandomMatrix(rows, 2 * kColumns)](
                   const OpTable& ops, OpContext& context) mutable {
            const MatrixView gate = query.view().column_slice(kHeadDim, 2 * kColumns - kHeadDim);
            ops.sigmoid_gate(context, {values.view(), gate, kHeads, kHeadDim, 2 * kHeadDim});
        };
    });
}
