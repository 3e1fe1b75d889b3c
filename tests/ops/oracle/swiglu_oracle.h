#pragma once

// FP64 oracle of cpp/ops/swiglu.h, from the contract alone.

#include "tests/ops/oracle/silu_oracle.h"

namespace ninfer::oracle {

inline double swiglu(double gate, double up) { return silu(gate) * up; }

// Relative: silu within 4 ulp (2^-23 each) and one product.
inline constexpr double kSwigluTolerance = 6e-7;

}  // namespace ninfer::oracle
