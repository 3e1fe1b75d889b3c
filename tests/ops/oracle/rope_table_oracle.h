#pragma once

// Oracle of cpp/ops/rope_table.h: the C library's long double sine and cosine of the angle, which the contract forms in
// f64.

#include <cmath>
#include <cstdint>

namespace ninfer::oracle {

struct RopeTableEntry {
    long double cosine;
    long double sine;
};

inline RopeTableEntry rope_table(std::int64_t position, double inverse_frequency) {
    const double angle = static_cast<double>(position) * inverse_frequency;
    return {std::cos(static_cast<long double>(angle)), std::sin(static_cast<long double>(angle))};
}

// In ulp of the f32 result.
inline constexpr double kRopeTableTolerance = 1.0;

}  // namespace ninfer::oracle
