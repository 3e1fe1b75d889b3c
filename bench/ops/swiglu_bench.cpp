// SwiGLU at the intermediate width of a 0.8B model.

#include "bench/support/row_op_bench.h"

int main(int argc, char** argv) {
    using namespace ninfer;
    static constexpr std::int64_t kColumns = 3584;
    return bench::bench_row_op(argc, argv, "swiglu, 3584 columns", 3 * 4 * kColumns, [&](std::int64_t rows) {
        return [gate = bench::RandomMatrix(rows, kColumns), up = bench::RandomMatrix(rows, kColumns),
                output = bench::RandomMatrix(rows, kColumns)](const OpTable& ops, OpContext& context) mutable {
            ops.swiglu(context, {gate.view(), up.view(), output.view()});
        };
    });
}
