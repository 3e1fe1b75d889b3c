#pragma once

// FP64 oracle of cpp/ops/rms_norm.h, from the contract alone.

#include <cmath>
#include <vector>

#include "cpp/ops/rms_norm.h"

namespace ninfer::oracle {

// Row-major [rows][columns] of x (with the residual added in f32, as the contract stores it) normalised in f64.
inline std::vector<double> rms_norm(const std::vector<float>& x, const std::vector<float>& weight, double epsilon) {
    const std::size_t columns = weight.size();
    std::vector<double> output(x.size());
    for (std::size_t begin = 0; begin < x.size(); begin += columns) {
        double sum = 0.0;
        for (std::size_t c = 0; c < columns; ++c) sum += static_cast<double>(x[begin + c]) * x[begin + c];
        const double factor = 1.0 / std::sqrt(sum / static_cast<double>(columns) + epsilon);
        for (std::size_t c = 0; c < columns; ++c) output[begin + c] = x[begin + c] * factor * weight[c];
    }
    return output;
}

// |difference| relative to the row's largest |output|: 64-lane sums of n squares and three more roundings.
inline constexpr double kRmsNormTolerance = 2e-6;

}  // namespace ninfer::oracle
