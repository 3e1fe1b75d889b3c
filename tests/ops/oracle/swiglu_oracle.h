#pragma once

// FP64 oracle of cpp/ops/swiglu.h, from the contract alone.

#include <cmath>

namespace ninfer::oracle {

inline double swiglu(double gate, double up) { return gate / (1.0 + std::exp(-gate)) * up; }

// Relative: silu within 4 ulp (2^-23 each) and one product.
inline constexpr double kSwigluTolerance = 6e-7;

}  // namespace ninfer::oracle
