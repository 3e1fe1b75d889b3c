#pragma once

// Per-head RMS norm followed by a SiLU gate, as after Gated DeltaNet:
//
//   output[r, h, d] = x[r, h, d] / sqrt(mean_d(x[r, h, :]^2) + epsilon) · weight[d] · silu(gate[r, h, d])
//
// Shapes: input, gate, output [rows, heads · head_dim] f32; weight [head_dim]; output may be the same memory as input.
// Numerics: as rms_norm, one row on one thread, then times silu(gate), that of swiglu, as the last factor. Scratch: none.

#include <cstdint>

#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"

namespace ninfer {

struct GatedRmsNormArgs {
    ConstMatrixView input;
    ConstMatrixView gate;
    const float* weight = nullptr;
    float epsilon = 0.0F;
    std::int64_t heads = 0;
    std::int64_t head_dim = 0;
    MatrixView output;
};

}  // namespace ninfer
