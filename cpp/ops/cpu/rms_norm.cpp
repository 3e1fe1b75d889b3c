#include "cpp/ops/rms_norm.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/simd/norm.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

void add_into(const float* input, float* residual, std::int64_t columns) {
    std::int64_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) store(residual + c, add(load(residual + c), load(input + c)));
    const std::int64_t tail = columns - c;
    if (tail > 0) store_n(residual + c, add(load_n(residual + c, tail), load_n(input + c, tail)), tail);
}

void normalise_row(const RmsNormArgs& args, std::int64_t row) {
    const std::int64_t columns = args.input.columns;
    const float* x = args.input.row(row);
    if (args.residual.data != nullptr) {
        add_into(x, args.residual.row(row), columns);
        x = args.residual.row(row);
    }
    const float factor = inverse_rms(x, columns, args.epsilon);
    scale_row(x, factor, args.weight, args.output.row(row), columns);
}

}  // namespace

void rms_norm(OpContext& context, const RmsNormArgs& args) {
    NINFER_ASSERT_EQ(args.output.columns, args.input.columns);
    NINFER_ASSERT_EQ(args.output.rows, args.input.rows);
    if (args.residual.data != nullptr) {
        NINFER_ASSERT_EQ(args.residual.columns, args.input.columns);
        NINFER_ASSERT_EQ(args.residual.rows, args.input.rows);
    }
    context.pool.parallel_for(args.input.rows, [&](std::int64_t row, int) { normalise_row(args, row); });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
