#pragma once

// Conversions between f32, IEEE half and bfloat16 in plain C++, exact or rounded to nearest even, the same whatever the
// thread's flush-to-zero state is (packing runs on compute threads).

#include <bit>
#include <cstdint>

namespace ninfer {

inline float f16_to_f32(std::uint16_t half) noexcept {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
    const std::uint32_t exponent = (half >> 10) & 0x1FU;
    const std::uint32_t mantissa = half & 0x3FFU;
    if (exponent == 0) {
        // A subnormal half is a normal float: 2^-24 times its integer mantissa.
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
        return std::bit_cast<float>(std::bit_cast<std::uint32_t>(magnitude) | sign);
    }
    const std::uint32_t wide_exponent = exponent == 31 ? 255U : exponent + 112U;
    return std::bit_cast<float>(sign | (wide_exponent << 23) | (mantissa << 13));
}

// Values from 65520 on become infinity; NaN stays NaN.
inline std::uint16_t f32_to_f16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = (bits >> 16) & 0x8000U;
    const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
    if (magnitude > 0x7F800000U) return static_cast<std::uint16_t>(sign | 0x7E00U);
    if (magnitude >= 0x477FF000U) return static_cast<std::uint16_t>(sign | 0x7C00U);
    // The lowest bit that a half keeps is bit `shift` of the 24-bit significand.
    const std::uint32_t exponent = magnitude >> 23;
    const bool normal = exponent >= 113;
    const std::uint32_t shift = normal ? 13 : 126 - exponent;
    if (shift > 24) return static_cast<std::uint16_t>(sign);
    const std::uint32_t significand = (magnitude & 0x7FFFFFU) | 0x800000U;
    std::uint32_t kept = significand >> shift;
    const std::uint32_t rest = significand & ((1U << shift) - 1);
    const std::uint32_t half_way = 1U << (shift - 1);
    if (rest > half_way || (rest == half_way && (kept & 1U) != 0)) ++kept;
    // Rounding up may carry into the exponent, which is what must happen.
    const std::uint32_t biased = normal ? kept + ((exponent - 113) << 10) : kept;
    return static_cast<std::uint16_t>(sign | biased);
}

inline float bf16_to_f32(std::uint16_t bits) noexcept {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Finite values above the largest bfloat16 become infinity. Not for NaN.
inline std::uint16_t f32_to_bf16(float value) noexcept {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    return static_cast<std::uint16_t>((bits + ((bits >> 16) & 1U) + 0x7FFFU) >> 16);
}

inline bool is_finite(float value) noexcept {
    return (std::bit_cast<std::uint32_t>(value) & 0x7F800000U) != 0x7F800000U;
}
inline bool is_finite_f16(std::uint16_t half) noexcept { return (half & 0x7C00U) != 0x7C00U; }

}  // namespace ninfer
