#pragma once

// Matrix products with packed weights: for each target t, output_t[r, o] = sum_i input[r, i] · W_t[o, i].
//
// All targets share the input, which is rounded or quantised once (gate and up; q, k, v; the projections of Gated
// DeltaNet). Shapes: input [rows, in_features] f32 with any row stride; output_t [rows, out_features_t] f32.
// Numerics (N-2 … N-4 of docs/design/numerics.md), the same for 1 row and for many, for every thread count and
// instruction set:
//   one f32 accumulator per output, inputs ascending; never split by rows, chunk or threads.
//   f32   acc = fma(x_i, w_i, acc)
//   bf16  x rounded to bfloat16 (nearest even); per pair of inputs (2i, 2i+1) first the odd, then the even index:
//         acc = fma(x, w, acc); odd in_features are padded with a zero
//   q8    x quantised per row in groups of 32: a = amax / 127, q = round_nearest_even(x / a) within ±127 (a = 0: all
//         zero);
//         isum = sum q_x · q_w exact in int32; acc = fma(f32(isum), w_scale · a, acc) over ascending groups
//   q4    the same with q_w in 0..15, then acc = fma(w_minimum, a · f32(sum q_x), acc) in the same group
// Results are finite for finite inputs; flush-to-zero holds. rows may be 0.
// Scratch: linear_scratch_bytes(rows, in_features, storage).

#include <cstddef>
#include <cstdint>

#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"
#include "cpp/tensor/weight_view.h"

namespace ninfer {

struct LinearTarget {
    WeightView weight;
    MatrixView output;
};

struct LinearArgs {
    ConstMatrixView input;
    const LinearTarget* targets = nullptr;
    std::int64_t target_count = 0;
};

// Upper bound of the scratch of one call, monotonic in rows and in_features. It is 0 for f32, which reads the input
// where it is, and one bound for bf16, q8 and q4 alike, which covers a call whose targets mix all four storages. So a
// call with mixed targets needs the bound of any of its targets that is not f32, which is the largest of its targets'.
std::size_t linear_scratch_bytes(std::int64_t rows, std::int64_t in_features, WeightStorage storage);

}  // namespace ninfer
