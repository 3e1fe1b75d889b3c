#pragma once

// SwiGLU (Shazeer, 2020): output[r, c] = silu(gate[r, c]) · up[r, c], silu(x) = x / (1 + e^-x), and -0 for
// x < -87.3, where it is smaller than 1.1e-36.
//
// Shapes: gate, up, output [rows, columns] f32; output may be the same memory as gate or up. Scratch: none.

#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"

namespace ninfer {

struct SwigluArgs {
    ConstMatrixView gate;
    ConstMatrixView up;
    MatrixView output;
};

}  // namespace ninfer
