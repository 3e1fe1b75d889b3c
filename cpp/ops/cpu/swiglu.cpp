#include "cpp/ops/swiglu.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/simd/math.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

// Columns of one task: enough work to be worth a claim, few enough that one decode row keeps several threads busy.
constexpr std::int64_t kTaskColumns = 1024;

void gate_columns(const float* gate, const float* up, float* output, std::int64_t columns) {
    std::int64_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) store(output + c, mul(silu(load(gate + c)), load(up + c)));
    const std::int64_t tail = columns - c;
    if (tail > 0) store_n(output + c, mul(silu(load_n(gate + c, tail)), load_n(up + c, tail)), tail);
}

}  // namespace

void swiglu(OpContext& context, const SwigluArgs& args) {
    const std::int64_t rows = args.gate.rows;
    const std::int64_t columns = args.gate.columns;
    NINFER_ASSERT_EQ(args.up.rows, rows);
    NINFER_ASSERT_EQ(args.up.columns, columns);
    NINFER_ASSERT_EQ(args.output.rows, rows);
    NINFER_ASSERT_EQ(args.output.columns, columns);
    const std::int64_t parts = (columns + kTaskColumns - 1) / kTaskColumns;
    context.pool.parallel_for(rows * parts, [&](std::int64_t task, int) {
        const std::int64_t row = task / parts;
        const std::int64_t begin = task % parts * kTaskColumns;
        const std::int64_t left = columns - begin;
        gate_columns(args.gate.row(row) + begin, args.up.row(row) + begin, args.output.row(row) + begin,
                     left < kTaskColumns ? left : kTaskColumns);
    });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
