#pragma once

#include <cmath>

namespace ninfer::oracle {

// silu as the contracts of swiglu, gated_rms_norm and causal_conv1d define it: -0 below -87.3, where x / (1 + e^-x) is
// smaller than 1.1e-36.
inline double silu(double x) {
    constexpr double kZeroBelow = -87.3F;
    return x < kZeroBelow ? -0.0 : x / (1.0 + std::exp(-x));
}

}  // namespace ninfer::oracle
