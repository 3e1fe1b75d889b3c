#pragma once

// FP64 oracle of cpp/ops/gated_rms_norm.h for one head, from the contract alone.

#include <cmath>
#include <vector>

#include "tests/ops/oracle/silu_oracle.h"

namespace ninfer::oracle {

inline std::vector<double> gated_rms_norm(const std::vector<float>& x, const std::vector<float>& gate,
                                          const std::vector<float>& weight, double epsilon) {
    double sum = 0.0;
    for (const float value : x) sum += static_cast<double>(value) * value;
    const double factor = 1.0 / std::sqrt(sum / static_cast<double>(x.size()) + epsilon);
    std::vector<double> output;
    for (std::size_t c = 0; c < x.size(); ++c) {
        const double g = gate[c];
        output.push_back(x[c] * factor * weight[c] * silu(g));
    }
    return output;
}

// |difference| relative to the head's largest |output|: the norm's 2e-6 and an exponential of 2 ulp.
inline constexpr double kGatedRmsNormTolerance = 3e-6;

}  // namespace ninfer::oracle
