#pragma once

// Rows of a packed embedding table: output[r, :] = W[ids[r], :], dequantised exactly (bf16 and quantised weights widen
// to f32; q8 as scale · q, q4 as fma(scale, q, minimum)).
//
// Shapes: ids [count] int32, each in 0 .. table.out_features - 1 (asserted); output [count, table.in_features] f32. The
// table is the panel layout of linear weights, so that tied embeddings keep one copy. Scratch: none.

#include <cstdint>

#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"
#include "cpp/tensor/weight_view.h"

namespace ninfer {

struct EmbeddingArgs {
    const std::int32_t* ids = nullptr;
    std::int64_t count = 0;
    WeightView table;
    MatrixView output;
};

}  // namespace ninfer
