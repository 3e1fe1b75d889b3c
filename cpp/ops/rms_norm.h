#pragma once

// RMS normalisation, optionally fused with the residual addition before it (Zhang and Sennrich, 2019).
//
//   x = residual + input   (written back to residual)   if a residual is given, else x = input
//   output[r, c] = x[r, c] / sqrt(mean_c(x[r, c]^2) + epsilon) · weight[c]
//
// Shapes: input, residual, output [rows, columns] f32; weight [columns] f32. Zero-centred norms (Qwen3.5) are the same
// op: the loader stores 1 + weight. output may be the same memory as input. Numerics: one row on one thread; squares
// are summed in 64 lanes (column mod 64) and a fixed tree (N-5 of docs/design/numerics.md); then x · (1 / sqrt(sum /
// columns + epsilon)) · weight in that order. Scratch: none.

#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"

namespace ninfer {

struct RmsNormArgs {
    ConstMatrixView input;
    MatrixView residual;  // data == nullptr: none
    const float* weight = nullptr;
    float epsilon = 0.0F;
    MatrixView output;
};

}  // namespace ninfer
