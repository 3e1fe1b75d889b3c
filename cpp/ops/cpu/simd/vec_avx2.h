#pragma once

// F32x16 on AVX2 + FMA + F16C: two registers, lanes 0-7 and 8-15. See vec.h for the contract.

#include <immintrin.h>

#include <cstdint>

#include "cpp/base/inline.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

struct F32x16 {
    __m256 lo;
    __m256 hi;
};
struct Mask16 {
    __m256 lo;
    __m256 hi;
};

NINFER_INLINE __m256i lane_mask_8(std::int64_t n) {
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes);
}
NINFER_INLINE Mask16 lane_mask(std::int64_t n) {
    return {_mm256_castsi256_ps(lane_mask_8(n)), _mm256_castsi256_ps(lane_mask_8(n - 8))};
}

NINFER_INLINE F32x16 zero() { return {_mm256_setzero_ps(), _mm256_setzero_ps()}; }
NINFER_INLINE F32x16 set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
NINFER_INLINE F32x16 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
NINFER_INLINE F32x16 load_n(const float* p, std::int64_t n) {
    return {_mm256_maskload_ps(p, lane_mask_8(n)), _mm256_maskload_ps(p + 8, lane_mask_8(n - 8))};
}
NINFER_INLINE void store(float* p, F32x16 a) {
    _mm256_storeu_ps(p, a.lo);
    _mm256_storeu_ps(p + 8, a.hi);
}
NINFER_INLINE void store_n(float* p, F32x16 a, std::int64_t n) {
    _mm256_maskstore_ps(p, lane_mask_8(n), a.lo);
    _mm256_maskstore_ps(p + 8, lane_mask_8(n - 8), a.hi);
}

NINFER_INLINE F32x16 add(F32x16 a, F32x16 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
NINFER_INLINE F32x16 sub(F32x16 a, F32x16 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
NINFER_INLINE F32x16 mul(F32x16 a, F32x16 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
NINFER_INLINE F32x16 div(F32x16 a, F32x16 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
NINFER_INLINE F32x16 sqrt(F32x16 a) { return {_mm256_sqrt_ps(a.lo), _mm256_sqrt_ps(a.hi)}; }
NINFER_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) {
    return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
NINFER_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
NINFER_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }
NINFER_INLINE Mask16 lt(F32x16 a, F32x16 b) {
    return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
NINFER_INLINE F32x16 select(Mask16 m, F32x16 t, F32x16 f) {
    return {_mm256_blendv_ps(f.lo, t.lo, m.lo), _mm256_blendv_ps(f.hi, t.hi, m.hi)};
}
NINFER_INLINE F32x16 round_nearest_even(F32x16 a) {
    constexpr int kMode = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
    return {_mm256_round_ps(a.lo, kMode), _mm256_round_ps(a.hi, kMode)};
}
NINFER_INLINE __m256 pow2_8(__m256 n) {
    const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    return _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23));
}
NINFER_INLINE F32x16 pow2(F32x16 n) { return {pow2_8(n.lo), pow2_8(n.hi)}; }

NINFER_INLINE __m256 widen_bf16_8(__m128i bits) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
NINFER_INLINE F32x16 load_bf16(const std::uint16_t* p) {
    return {widen_bf16_8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            widen_bf16_8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
NINFER_INLINE __m256i bf16_rounded_bits_8(__m256 a) {
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i lsb = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    return _mm256_add_epi32(bits, _mm256_add_epi32(lsb, _mm256_set1_epi32(0x7FFF)));
}
NINFER_INLINE F32x16 bf16_round(F32x16 a) {
    const __m256i keep = _mm256_set1_epi32(static_cast<int>(0xFFFF0000U));
    return {_mm256_castsi256_ps(_mm256_and_si256(bf16_rounded_bits_8(a.lo), keep)),
            _mm256_castsi256_ps(_mm256_and_si256(bf16_rounded_bits_8(a.hi), keep))};
}
NINFER_INLINE void store_bf16(std::uint16_t* p, F32x16 a) {
    const __m256i lo = _mm256_srli_epi32(bf16_rounded_bits_8(a.lo), 16);
    const __m256i hi = _mm256_srli_epi32(bf16_rounded_bits_8(a.hi), 16);
    // packus works within 128-bit halves; the permutation restores lane order.
    const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(lo, hi), 0xD8);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), packed);
}
NINFER_INLINE void store_bf16_n(std::uint16_t* p, F32x16 a, std::int64_t n) {
    alignas(32) std::uint16_t all[16];
    store_bf16(all, a);
    for (std::int64_t i = 0; i < n; ++i) p[i] = all[i];
}
NINFER_INLINE F32x16 load_f16(const std::uint16_t* p) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
            _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
NINFER_INLINE F32x16 widen_i8(__m128i bytes) {
    return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(bytes)),
            _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(bytes, 8)))};
}
NINFER_INLINE F32x16 load_i8(const std::int8_t* p) {
    return widen_i8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

NINFER_INLINE float reduce_add(F32x16 a) {
    const __m256 eight = _mm256_add_ps(a.lo, a.hi);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
NINFER_INLINE float reduce_max(F32x16 a) {
    const __m256 eight = _mm256_max_ps(a.lo, a.hi);
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
