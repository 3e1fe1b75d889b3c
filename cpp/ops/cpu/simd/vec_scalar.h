#pragma once

// F32x16 in plain C++ for any x86-64 CPU. Slow and exact: it gives the same bits as the wide variants. See vec.h.

#include <emmintrin.h>

#include <cstdint>

#include "cpp/base/inline.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

struct F32x16 {
    float v[16];
};
struct Mask16 {
    bool v[16];
};

// a·b + c rounded once, without an FMA unit: the product of two floats is exact in double; the sum is rounded to odd
// there (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008), so that the final rounding to float
// is correct.
NINFER_INLINE float fma1(float a, float b, float c) {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double addend = static_cast<double>(c);
    double sum = product + addend;
    const double rounded_addend = sum - product;
    const double error = (product - (sum - rounded_addend)) + (addend - rounded_addend);
    if (error > 0.0 || error < 0.0) {
        auto bits = __builtin_bit_cast(std::uint64_t, sum);
        if ((bits & 1) == 0) bits += ((error > 0.0) == (sum > 0.0)) ? std::uint64_t{1} : ~std::uint64_t{0};
        sum = __builtin_bit_cast(double, bits);
    }
    return static_cast<float>(sum);
}

#define NINFER_LANES for (int i = 0; i < 16; ++i)

NINFER_INLINE Mask16 lane_mask(std::int64_t n) {
    Mask16 r;
    NINFER_LANES r.v[i] = i < n;
    return r;
}

NINFER_INLINE F32x16 set1(float x) {
    F32x16 r;
    NINFER_LANES r.v[i] = x;
    return r;
}
NINFER_INLINE F32x16 zero() { return set1(0.0F); }
NINFER_INLINE F32x16 load(const float* p) {
    F32x16 r;
    NINFER_LANES r.v[i] = p[i];
    return r;
}
NINFER_INLINE F32x16 load_n(const float* p, std::int64_t n) {
    F32x16 r;
    NINFER_LANES r.v[i] = i < n ? p[i] : 0.0F;
    return r;
}
NINFER_INLINE void store(float* p, F32x16 a) { NINFER_LANES p[i] = a.v[i]; }
NINFER_INLINE void store_n(float* p, F32x16 a, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) p[i] = a.v[i];
}

NINFER_INLINE F32x16 add(F32x16 a, F32x16 b) {
    NINFER_LANES a.v[i] = a.v[i] + b.v[i];
    return a;
}
NINFER_INLINE F32x16 sub(F32x16 a, F32x16 b) {
    NINFER_LANES a.v[i] = a.v[i] - b.v[i];
    return a;
}
NINFER_INLINE F32x16 mul(F32x16 a, F32x16 b) {
    NINFER_LANES a.v[i] = a.v[i] * b.v[i];
    return a;
}
NINFER_INLINE F32x16 div(F32x16 a, F32x16 b) {
    NINFER_LANES a.v[i] = a.v[i] / b.v[i];
    return a;
}
NINFER_INLINE F32x16 sqrt(F32x16 a) {
    NINFER_LANES a.v[i] = _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(a.v[i])));
    return a;
}
NINFER_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    NINFER_LANES a.v[i] = fma1(a.v[i], b.v[i], c.v[i]);
    return a;
}
NINFER_INLINE F32x16 max(F32x16 a, F32x16 b) {
    NINFER_LANES a.v[i] = a.v[i] > b.v[i] ? a.v[i] : b.v[i];
    return a;
}
NINFER_INLINE F32x16 min(F32x16 a, F32x16 b) {
    NINFER_LANES a.v[i] = a.v[i] < b.v[i] ? a.v[i] : b.v[i];
    return a;
}
NINFER_INLINE Mask16 lt(F32x16 a, F32x16 b) {
    Mask16 r;
    NINFER_LANES r.v[i] = a.v[i] < b.v[i];
    return r;
}
NINFER_INLINE F32x16 select(Mask16 m, F32x16 t, F32x16 f) {
    NINFER_LANES t.v[i] = m.v[i] ? t.v[i] : f.v[i];
    return t;
}
// Magnitudes from 2^23 on are integral already (and would overflow the conversion); the sign of zero is kept.
NINFER_INLINE float round_nearest_even1(float a) {
    const auto bits = __builtin_bit_cast(std::uint32_t, a);
    if ((bits & 0x7FFFFFFFU) >= 0x4B000000U) return a;
    const float rounded = static_cast<float>(_mm_cvtss_si32(_mm_set_ss(a)));
    return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, rounded) | (bits & 0x80000000U));
}
NINFER_INLINE F32x16 round_nearest_even(F32x16 a) {
    NINFER_LANES a.v[i] = round_nearest_even1(a.v[i]);
    return a;
}
NINFER_INLINE F32x16 pow2(F32x16 n) {
    NINFER_LANES n.v[i] =
        __builtin_bit_cast(float, static_cast<std::uint32_t>(_mm_cvtss_si32(_mm_set_ss(n.v[i])) + 127) << 23);
    return n;
}

NINFER_INLINE float widen_bf16_1(std::uint16_t bits) {
    return __builtin_bit_cast(float, static_cast<std::uint32_t>(bits) << 16);
}
NINFER_INLINE std::uint32_t bf16_rounded_bits_1(float a) {
    const auto bits = __builtin_bit_cast(std::uint32_t, a);
    return bits + (((bits >> 16) & 1U) + 0x7FFFU);
}
NINFER_INLINE F32x16 load_bf16(const std::uint16_t* p) {
    F32x16 r;
    NINFER_LANES r.v[i] = widen_bf16_1(p[i]);
    return r;
}
NINFER_INLINE F32x16 bf16_round(F32x16 a) {
    NINFER_LANES a.v[i] = __builtin_bit_cast(float, bf16_rounded_bits_1(a.v[i]) & 0xFFFF0000U);
    return a;
}
NINFER_INLINE void store_bf16_n(std::uint16_t* p, F32x16 a, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) p[i] = static_cast<std::uint16_t>(bf16_rounded_bits_1(a.v[i]) >> 16);
}
NINFER_INLINE void store_bf16(std::uint16_t* p, F32x16 a) { store_bf16_n(p, a, 16); }

// IEEE half to float, exact. Subnormal halves are normal floats: 2^-24 times their integer mantissa.
NINFER_INLINE float widen_f16_1(std::uint16_t half) {
    const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000U) << 16;
    const std::uint32_t exponent = (half >> 10) & 0x1FU;
    const std::uint32_t mantissa = half & 0x3FFU;
    if (exponent == 0) {
        const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;
        return __builtin_bit_cast(float, __builtin_bit_cast(std::uint32_t, magnitude) | sign);
    }
    const std::uint32_t wide_exponent = exponent == 31 ? 255U : exponent + 112U;
    return __builtin_bit_cast(float, sign | (wide_exponent << 23) | (mantissa << 13));
}
NINFER_INLINE F32x16 load_f16(const std::uint16_t* p) {
    F32x16 r;
    NINFER_LANES r.v[i] = widen_f16_1(p[i]);
    return r;
}
NINFER_INLINE F32x16 load_i8(const std::int8_t* p) {
    F32x16 r;
    NINFER_LANES r.v[i] = static_cast<float>(p[i]);
    return r;
}

NINFER_INLINE float reduce_add(F32x16 a) {
    for (int width = 8; width >= 1; width /= 2)
        for (int i = 0; i < width; ++i) a.v[i] = a.v[i] + a.v[i + width];
    return a.v[0];
}
NINFER_INLINE float reduce_max(F32x16 a) {
    for (int width = 8; width >= 1; width /= 2)
        for (int i = 0; i < width; ++i) a.v[i] = a.v[i] > a.v[i + width] ? a.v[i] : a.v[i + width];
    return a.v[0];
}

#undef NINFER_LANES

}  // namespace ninfer::NINFER_ISA_NAMESPACE
