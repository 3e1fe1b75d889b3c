#pragma once

// Causal softmax attention over paged keys and values, grouped-query (Vaswani et al., 2017; Kwon et al., 2023).
//
//   output[r, h, :] = sum_{j <= p} softmax_j(scale · q[r, h] · k[j, h / group]) · v[j, h / group]
//
// where p is the position of row r and group = heads / kv_heads.
//
// Shapes: query as norm_rope_append leaves it; output [rows, heads · head_dim] f32. Every position <= p is in the
// pages.
//
// Numerics (N-6 of docs/design/numerics.md): a query visits pages 0 .. p/64 ascending with online softmax. QK: lanes =
// keys, features ascending, s = fma(q_d, k_d, s) from 0 with q pre-multiplied by scale; int8 keys accumulate per 64
// features and then s = fma(block, key_scale, s). Per page one maximum, one rescale of sum and accumulator by
// exp(m_old - m_new), weights exp(s - m_new), their sum over 64 lanes by the fixed tree, sum = fma(sum, rescale,
// page_sum). PV: lanes = features, keys ascending, acc = fma(weight, v, acc), int8 values with weight · value_scale
// first. Keys > p never contribute, not even as zero times garbage. The accumulation restarts every 1,024 absolute
// keys; finished segments are merged left to right: m = max(m1, m2), sum = fma(sum2, exp(m2 - m), sum1 · exp(m1 - m)),
// likewise the accumulator. The result is acc / sum. The same bits in prefill and decode, for any chunking, batch and
// thread count.
//
// Scratch: paged_attention_scratch_bytes(threads, shape).

#include <cstddef>
#include <cstdint>

#include "cpp/ops/kv_segment.h"
#include "cpp/ops/norm_rope_append.h"
#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"

namespace ninfer {

struct PagedAttentionArgs {
    AttentionShape shape;
    float scale = 0.0F;
    ConstMatrixView query;
    MatrixView output;
    const KvSegment* segments = nullptr;
    std::int64_t segment_count = 0;
};

std::size_t paged_attention_scratch_bytes(int threads, const AttentionShape& shape);

}  // namespace ninfer
