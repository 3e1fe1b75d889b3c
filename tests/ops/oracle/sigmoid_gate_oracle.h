#pragma once

// FP64 oracle of cpp/ops/sigmoid_gate.h, from the contract alone.

#include <cmath>

namespace ninfer::oracle {

inline double sigmoid_gate(double value, double gate) { return value / (1.0 + std::exp(-gate)); }

// Relative: sigmoid within 4 ulp (2^-23 each) and one product.
inline constexpr double kSigmoidGateTolerance = 6e-7;

}  // namespace ninfer::oracle
