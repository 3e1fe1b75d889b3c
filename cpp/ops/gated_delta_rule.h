#pragma once

// Gated delta rule (Yang et al., "Gated Delta Networks", 2024) as the token recurrence, in prefill and decode alike.
//
// Per token and value head h (key head h / (value_heads / key_heads)), with state S [key_dim][value_dim]:
//   q <- q / sqrt(sum q^2 + 1e-6) / sqrt(key_dim),  k <- k / sqrt(sum k^2 + 1e-6)
//   decay = exp(-decay_rate[h] · softplus(a[h] + dt_bias[h])),  beta = sigmoid(b[h])
//   S <- S · decay;  delta = (v - k^T S) · beta;  S <- S + k delta^T;  output = q^T S
//
// Shapes: qkv [rows, conv_channels] = q heads, k heads, v heads after convolution and SiLU; a, b [rows, value_heads];
// decay_rate = exp(A_log), dt_bias [value_heads]; output [rows, value_heads · value_dim]; state per segment in
// RecurrentStateLayout, read and write may be the same memory. Rows of a segment are consecutive tokens; a segment
// without rows copies its state.
// Numerics (N-7 of docs/design/numerics.md): lanes = value columns; sums over key_dim in 4 chains (index mod 4), each
// ascending with fma, combined as (c0 + c1) + (c2 + c3); sums of squares in 64 lanes and the fixed tree, q and k times
// 1 / sqrt(sum + 1e-6), then q times 1 / sqrt(key_dim); decayed state s·decay is rounded once before it is used;
// S + k·delta = fma(k, delta, s·decay). Padded columns stay zero. Threads split over (sequence, head, column tile)
// only.
// Scratch: gated_delta_rule_scratch_bytes(rows, layout).

#include <cstddef>
#include <cstdint>

#include "cpp/ops/op_context.h"
#include "cpp/ops/row_segment.h"
#include "cpp/tensor/matrix_view.h"
#include "cpp/tensor/recurrent_state_view.h"

namespace ninfer {

struct RecurrentSegment {
    RowSegment rows;
    RecurrentStateView state;
};

struct GatedDeltaRuleArgs {
    RecurrentStateLayout layout;
    ConstMatrixView qkv;
    ConstMatrixView a;
    ConstMatrixView b;
    const float* decay_rate = nullptr;
    const float* dt_bias = nullptr;
    MatrixView output;
    const RecurrentSegment* segments = nullptr;
    std::int64_t segment_count = 0;
};

std::size_t gated_delta_rule_scratch_bytes(std::int64_t rows, const RecurrentStateLayout& layout);

}  // namespace ninfer
