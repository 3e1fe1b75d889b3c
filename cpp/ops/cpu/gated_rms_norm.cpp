#include "cpp/ops/gated_rms_norm.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/simd/math.h"
#include "cpp/ops/cpu/simd/norm.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

NINFER_INLINE F32x16 gated(F32x16 x, F32x16 factor, F32x16 weight, F32x16 gate) {
    return mul(mul(mul(x, factor), weight), silu(gate));
}

void normalise_head(const GatedRmsNormArgs& args, const float* x, const float* gate, float* output) {
    const F32x16 factor = set1(inverse_rms(x, args.head_dim, args.epsilon));
    std::int64_t c = 0;
    for (; c + kLanes <= args.head_dim; c += kLanes)
        store(output + c, gated(load(x + c), factor, load(args.weight + c), load(gate + c)));
    const std::int64_t tail = args.head_dim - c;
    if (tail == 0) return;
    const F32x16 weight = load_n(args.weight + c, tail);
    store_n(output + c, gated(load_n(x + c, tail), factor, weight, load_n(gate + c, tail)), tail);
}

}  // namespace

void gated_rms_norm(OpContext& context, const GatedRmsNormArgs& args) {
    NINFER_ASSERT_EQ(args.input.columns, args.heads * args.head_dim);
    NINFER_ASSERT_EQ(args.gate.columns, args.input.columns);
    NINFER_ASSERT_EQ(args.output.columns, args.input.columns);
    NINFER_ASSERT_EQ(args.gate.rows, args.input.rows);
    NINFER_ASSERT_EQ(args.output.rows, args.input.rows);
    context.pool.parallel_for(args.input.rows, [&](std::int64_t row, int) {
        for (std::int64_t begin = 0; begin < args.input.columns; begin += args.head_dim)
            normalise_head(args, args.input.row(row) + begin, args.gate.row(row) + begin, args.output.row(row) + begin);
    });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
