#pragma once

// Elementary functions on F32x16, the same bits on every instruction set: no libm in kernels (N-1 of
// docs/design/numerics.md). Polynomials are Taylor-like minimax fits on reduced ranges; named error bounds are checked
// against f64 in tests/ops/math_test.cpp.

#include "cpp/ops/cpu/simd/vec.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

// Below this e^x is given as 0: the smallest normal float is e^-87.34, and compute threads flush denormals.
inline constexpr float kLowestExponent = -87.3F;

// e^x, error <= 2 ulp. x below -87.3 gives 0 exactly, so that masked scores of -inf contribute nothing; x above 88.3 is
// clamped there (callers subtract a maximum or bound their input). NaN stays NaN: maxps and minps return their second
// operand then, so x comes second.
NINFER_INLINE F32x16 exp(F32x16 x) {
    const F32x16 lowest = set1(kLowestExponent);
    const F32x16 clamped = min(set1(88.3F), max(lowest, x));
    // n = round(x / ln 2); r = x - n ln 2 in two steps (Cody and Waite), |r| <= 0.347.
    const F32x16 n = round_nearest_even(mul(clamped, set1(1.44269504088896341F)));
    F32x16 r = fma(n, set1(-0.693145751953125F), clamped);
    r = fma(n, set1(-1.42860682030941723212e-6F), r);
    F32x16 p = set1(1.0F / 5040.0F);
    p = fma(p, r, set1(1.0F / 720.0F));
    p = fma(p, r, set1(1.0F / 120.0F));
    p = fma(p, r, set1(1.0F / 24.0F));
    p = fma(p, r, set1(1.0F / 6.0F));
    p = fma(p, r, set1(0.5F));
    p = fma(p, r, set1(1.0F));
    p = fma(p, r, set1(1.0F));
    // n reaches 127 at the upper clamp; 2^127 is representable.
    const F32x16 value = mul(p, pow2(n));
    return select(lt(x, lowest), zero(), value);
}

// 1 / (1 + e^-x), error <= 4 ulp; 0 where the result would be denormal.
NINFER_INLINE F32x16 sigmoid(F32x16 x) {
    const F32x16 one = set1(1.0F);
    return div(one, add(one, exp(sub(zero(), x))));
}

// x · sigmoid(x), error <= 4 ulp. Below -87.3 the result is -0: e^-x is clamped there and x / e^-x would be wrong, up
// to -inf for x = -inf.
NINFER_INLINE F32x16 silu(F32x16 x) {
    const F32x16 value = div(x, add(set1(1.0F), exp(sub(zero(), x))));
    return select(lt(x, set1(kLowestExponent)), set1(-0.0F), value);
}

// ln(1 + y) for y in [0, 1], error <= 3 ulp: with s = y / (2 + y), ln(1 + y) = 2 atanh(s), |s| <= 1/3. 2 s is formed
// first, so that the smallest normal y does not turn into a denormal.
NINFER_INLINE F32x16 log1p_unit(F32x16 y) {
    const F32x16 twice = div(y, fma(set1(0.5F), y, set1(1.0F)));
    const F32x16 s = mul(set1(0.5F), twice);
    const F32x16 s2 = mul(s, s);
    F32x16 p = set1(1.0F / 15.0F);
    p = fma(p, s2, set1(1.0F / 13.0F));
    p = fma(p, s2, set1(1.0F / 11.0F));
    p = fma(p, s2, set1(1.0F / 9.0F));
    p = fma(p, s2, set1(1.0F / 7.0F));
    p = fma(p, s2, set1(1.0F / 5.0F));
    p = fma(p, s2, set1(1.0F / 3.0F));
    p = mul(p, s2);
    return fma(twice, p, twice);
}

// ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|), without overflow, error <= 4 ulp; 0 below -87.3.
NINFER_INLINE F32x16 softplus(F32x16 x) {
    const F32x16 magnitude = max(x, sub(zero(), x));
    return add(max(x, zero()), log1p_unit(exp(sub(zero(), magnitude))));
}

// ln x for one normal positive x, error <= 3 ulp. x = 2^e · m with m in [sqrt(1/2), sqrt(2)); s = (m - 1) / (m + 1),
// |s| <= 0.172, ln m = 2 atanh(s). The first part of ln 2 has 15 bits, so that its product with e is exact.
NINFER_INLINE float log(float x) {
    constexpr std::uint32_t kSqrtHalf = 0x3F3504F3U;
    const auto bits = __builtin_bit_cast(std::uint32_t, x);
    const std::int32_t exponent = static_cast<std::int32_t>(bits - kSqrtHalf) >> 23;
    const float mantissa = __builtin_bit_cast(float, bits - (static_cast<std::uint32_t>(exponent) << 23));
    const F32x16 e = set1(static_cast<float>(exponent));
    const F32x16 s = set1((mantissa - 1.0F) / (mantissa + 1.0F));
    const F32x16 s2 = mul(s, s);
    F32x16 p = set1(1.0F / 9.0F);
    p = fma(p, s2, set1(1.0F / 7.0F));
    p = fma(p, s2, set1(1.0F / 5.0F));
    p = fma(p, s2, set1(1.0F / 3.0F));
    const F32x16 twice = add(s, s);
    F32x16 result = fma(mul(twice, s2), p, mul(e, set1(1.42860682030941723212e-6F)));
    result = add(fma(e, set1(0.693145751953125F), twice), result);
    float lanes[kLanes];
    store(lanes, result);
    return lanes[0];
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
