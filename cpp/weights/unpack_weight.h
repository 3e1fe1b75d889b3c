#pragma once

#include "cpp/tensor/weight_view.h"

namespace ninfer {

// Writes a packed weight as row-major f32 [out_features, in_features], dequantised as the ops' contracts say (q4 rounds
// scale · q + minimum once, like fma). For tests and tools; ops read panels directly.
void unpack_weight(const WeightView& weight, float* output);

}  // namespace ninfer
