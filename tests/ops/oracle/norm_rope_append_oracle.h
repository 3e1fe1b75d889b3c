#pragma once

// FP64 oracle of cpp/ops/norm_rope_append.h, from the contract alone: one head of one row, before it is stored.

#include <cmath>
#include <vector>

namespace ninfer::oracle {

// norm empty: none. cosines, sines: [rotary_dim / 2] of the row.
inline std::vector<double> norm_rope(const std::vector<float>& head, const std::vector<float>& norm, double epsilon,
                                     const std::vector<float>& cosines, const std::vector<float>& sines) {
    std::vector<double> x(head.begin(), head.end());
    if (!norm.empty()) {
        double sum = 0.0;
        for (const double v : x) sum += v * v;
        const double factor = 1.0 / std::sqrt(sum / static_cast<double>(x.size()) + epsilon);
        for (std::size_t d = 0; d < x.size(); ++d) x[d] *= factor * norm[d];
    }
    const std::size_t half = cosines.size();
    for (std::size_t i = 0; i < half; ++i) {
        const double first = x[i];
        const double second = x[i + half];
        x[i] = first * cosines[i] - second * sines[i];
        x[i + half] = second * cosines[i] + first * sines[i];
    }
    return x;
}

// |difference| relative to the head's largest |value|: the norm's 2e-6 and three roundings of the rotation.
inline constexpr double kNormRopeTolerance = 3e-6;
// Relative error of rounding to bfloat16: half of 2^-7 at the lower end of a binade.
inline constexpr double kBf16Rounding = 0x1p-8;
// int8: half a quantum, in units of the scale.
inline constexpr double kInt8Rounding = 0.5;

}  // namespace ninfer::oracle
