#pragma once

// Rounds 32 consecutive weights of one output feature to the quantised storages (N-3 of docs/design/numerics.md).

#include <cstdint>
#include <optional>

namespace ninfer {

// w = scale · q, q in -127 .. 127.
struct Q8Group {
    std::uint16_t scale = 0;  // f16
    std::int8_t quants[32] = {};
};

// w = scale · q + minimum, q in 0 .. 15.
struct Q4Group {
    std::uint16_t scale = 0;    // f16
    std::uint16_t minimum = 0;  // f16
    std::uint8_t quants[32] = {};
};

// scale = f16(amax / 127); the quants are taken against the rounded scale, nearest even. Nothing if the scale overflows
// f16 (amax above about 8.3 million). Inputs are finite.
std::optional<Q8Group> quantise_q8(const float* weights);

// The 16 levels between minimum and maximum, or, where their squared error is lower, those of a narrower range fitted
// by least squares; errors are measured against the f16-rounded scale and minimum. Nothing if either overflows f16.
std::optional<Q4Group> quantise_q4(const float* weights);

}  // namespace ninfer
