#pragma once

// The shared core of every RMS norm: one row, squares summed in 64 lanes (index mod 64) and the fixed tree (N-5 of
// docs/design/numerics.md).

#include <cstdint>

#include "cpp/ops/cpu/simd/vec.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

// sum_c x[c]^2.
NINFER_INLINE float sum_of_squares(const float* x, std::int64_t columns) {
    F32x16 lanes[4] = {zero(), zero(), zero(), zero()};
    std::int64_t c = 0;
    for (; c + 4 * kLanes <= columns; c += 4 * kLanes)
        for (int j = 0; j < 4; ++j) {
            const F32x16 v = load(x + c + j * kLanes);
            lanes[j] = fma(v, v, lanes[j]);
        }
    for (int j = 0; c < columns; ++j, c += kLanes) {
        const std::int64_t left = columns - c;
        const F32x16 v = load_n(x + c, left < kLanes ? left : kLanes);
        lanes[j] = fma(v, v, lanes[j]);
    }
    return reduce_add_64(lanes[0], lanes[1], lanes[2], lanes[3]);
}

// 1 / sqrt(mean(x^2) + epsilon).
NINFER_INLINE float inverse_rms(const float* x, std::int64_t columns, float epsilon) {
    const float mean = sum_of_squares(x, columns) / static_cast<float>(columns);
    float result[16];
    store(result, div(set1(1.0F), sqrt(set1(mean + epsilon))));
    return result[0];
}

// output[c] = x[c] · factor · weight[c]; output may be x.
NINFER_INLINE void scale_row(const float* x, float factor, const float* weight, float* output, std::int64_t columns) {
    const F32x16 scale = set1(factor);
    std::int64_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) store(output + c, mul(mul(load(x + c), scale), load(weight + c)));
    const std::int64_t tail = columns - c;
    if (tail > 0) store_n(output + c, mul(mul(load_n(x + c, tail), scale), load_n(weight + c, tail)), tail);
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
