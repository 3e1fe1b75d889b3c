#pragma once

// Activations as the linear kernels read them; written once per op call, row by row.

#include <cstdint>

#include "cpp/ops/cpu/quantised_group.h"
#include "cpp/ops/cpu/simd/dot.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

// x[0..columns) into ceil(columns / 32) groups; inputs beyond the last are zero.
void quantise_row(const float* x, std::int64_t columns, QuantisedGroup* output);

// x[0..columns) rounded to bfloat16; a zero is added if columns is odd.
void round_row_to_bf16(const float* x, std::int64_t columns, Bf16Input* output);

}  // namespace ninfer::NINFER_ISA_NAMESPACE
