#include "cpp/ops/sigmoid_gate.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/simd/math.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

void gate_head(const float* gate, float* values, std::int64_t count) {
    std::int64_t d = 0;
    for (; d + kLanes <= count; d += kLanes) store(values + d, mul(load(values + d), sigmoid(load(gate + d))));
    const std::int64_t tail = count - d;
    if (tail > 0) store_n(values + d, mul(load_n(values + d, tail), sigmoid(load_n(gate + d, tail))), tail);
}

}  // namespace

void sigmoid_gate(OpContext& context, const SigmoidGateArgs& args) {
    NINFER_ASSERT_EQ(args.values.columns, args.heads * args.head_dim);
    NINFER_ASSERT_EQ(args.gate.rows, args.values.rows);
    NINFER_ASSERT_LE(args.head_dim, args.gate_head_stride);
    NINFER_ASSERT_LE((args.heads - 1) * args.gate_head_stride + args.head_dim, args.gate.columns);
    context.pool.parallel_for(args.values.rows, [&](std::int64_t row, int) {
        for (std::int64_t h = 0; h < args.heads; ++h)
            gate_head(args.gate.row(row) + h * args.gate_head_stride, args.values.row(row) + h * args.head_dim,
                      args.head_dim);
    });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
