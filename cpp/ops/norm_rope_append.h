#pragma once

// Prepares a batch for attention in one pass: optional per-head RMS norm of q and k, rotary embedding of the first
// rotary_dim features (rotate-half: pairs (i, i + rotary_dim/2)), and rounding of k and v into their pages.
//
//   q[r, h, :] <- rope(norm(q[r, h, :], query_norm))             in place
//   page(p).k[h, :] <- store(rope(norm(k[r, h, :], key_norm)))   p = first_position + row in its segment
//   page(p).v[h, :] <- store(v[r, h, :])
//
// Shapes: query [rows, ≥ heads · query_head_stride]: head h begins at column h · query_head_stride (2 · head_dim where
// the projection interleaves an output gate); key, value [rows, kv_heads · head_dim]; norms [head_dim] or nullptr;
// cosines, sines [rows][rotary_dim / 2]; head_dim up to kMaxHeadDim; first_position at least 0. The pages of every
// position must exist and be owned by the writer.
//
// Numerics: norm as rms_norm (64 lanes, fixed tree); rope: first half = fma(x1, cos, -(x2 · sin)), second half =
// fma(x2, cos, x1 · sin); storage f32 exact, bf16 nearest even, int8 as in paged_kv_view.h with q = round(x / scale),
// and scale 0 with q 0 where amax / 127 is 0 (or flushed to it). All of a chunk's k and v are in their pages before any
// query of it reads them (N-6 of docs/design/numerics.md): the op returns when everything is written. Inputs are
// finite.
//
// Scratch: none.

#include <cstdint>

#include "cpp/ops/kv_segment.h"
#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"

namespace ninfer {

// A head of one token is prepared on the stack.
inline constexpr std::int64_t kMaxHeadDim = 512;

struct AttentionShape {
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t rotary_dim = 0;
    std::int64_t query_head_stride = 0;
};

struct NormRopeAppendArgs {
    AttentionShape shape;
    MatrixView query;
    ConstMatrixView key;
    ConstMatrixView value;
    const float* query_norm = nullptr;
    const float* key_norm = nullptr;
    float epsilon = 0.0F;
    const float* cosines = nullptr;
    const float* sines = nullptr;
    const KvSegment* segments = nullptr;
    std::int64_t segment_count = 0;
};

}  // namespace ninfer
