#pragma once

// FP64 oracle of cpp/ops/causal_conv1d.h for one channel of one sequence, from the contract alone.

#include <cmath>
#include <vector>

#include "tests/ops/oracle/silu_oracle.h"

namespace ninfer::oracle {

// inputs: the W-1 inputs of the history, then the new ones; taps: W weights, oldest first. One output per new input.
inline std::vector<double> causal_conv1d(const std::vector<float>& inputs, const std::vector<float>& taps) {
    std::vector<double> outputs;
    for (std::size_t begin = 0; begin + taps.size() <= inputs.size(); ++begin) {
        double sum = 0.0;
        for (std::size_t j = 0; j < taps.size(); ++j) sum += static_cast<double>(taps[j]) * inputs[begin + j];
        outputs.push_back(silu(sum));
    }
    return outputs;
}

// Absolute, for sums of at most 8 products of magnitude about 10.
inline constexpr double kCausalConv1dTolerance = 2e-5;

}  // namespace ninfer::oracle
