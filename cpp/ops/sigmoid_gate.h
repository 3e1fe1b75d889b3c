#pragma once

// Output gate of gated attention (Qiu et al., 2025): values[r, h, d] <- values[r, h, d] · sigmoid(gate[r, h, d]).
//
// Shapes: values [rows, heads · head_dim], in place; gate [rows, ...]: head h begins at column h · gate_head_stride.
// Scratch: none.

#include <cstdint>

#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"

namespace ninfer {

struct SigmoidGateArgs {
    MatrixView values;
    ConstMatrixView gate;
    std::int64_t heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t gate_head_stride = 0;
};

}  // namespace ninfer
