#pragma once

// Depthwise causal convolution over time with carried history, followed by SiLU.
//
//   output[t, c] = silu(sum_{j=0}^{W-1} weight[j, c] · x[t - (W-1) + j, c]),   x[<0] from the history
//
// Shapes: input, output [rows, channels] f32 (distinct memory); weight [W][channels], oldest tap first; per segment
// history_read, history_write [W-1][channels], oldest first, of raw inputs (RecurrentStateLayout::conv_floats). After the
// op history_write holds the last W-1 inputs, also where a segment has fewer rows than that (or none: the history is
// copied); it may be the same memory as history_read. W in 1..8; with W = 1 there is no history.
// Numerics: taps ascending, acc = fma(weight, x, acc) from 0; silu is that of swiglu. Scratch: none.

#include <cstdint>

#include "cpp/ops/op_context.h"
#include "cpp/ops/row_segment.h"
#include "cpp/tensor/matrix_view.h"

namespace ninfer {

struct ConvSegment {
    RowSegment rows;
    const float* history_read = nullptr;
    float* history_write = nullptr;
};

struct CausalConv1dArgs {
    ConstMatrixView input;
    const float* weight = nullptr;
    std::int64_t width = 0;
    MatrixView output;
    const ConvSegment* segments = nullptr;
    std::int64_t segment_count = 0;
};

}  // namespace ninfer
