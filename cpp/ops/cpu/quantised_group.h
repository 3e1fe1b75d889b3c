#pragma once

#include <cstdint>

namespace ninfer {

// 32 activations of one row, quantised as linear.h says; rows of these are what q8 and q4 kernels read. Everything that
// depends on the row and group alone is worked out once here.
struct QuantisedGroup {
    std::int8_t values[32];
    float scale;        // a = amax / 127
    float scaled_sum;   // a · f32(sum of values)
    std::int32_t bias;  // -128 · sum of values
};

}  // namespace ninfer
