#pragma once

// F32x16 on AVX-512: one register. See vec.h for the contract.

#include <immintrin.h>

#include <cstdint>

#include "cpp/base/inline.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

struct F32x16 {
    __m512 v;
};
using Mask16 = __mmask16;

NINFER_INLINE Mask16 lane_mask(std::int64_t n) { return static_cast<Mask16>((std::uint32_t{1} << n) - 1); }

NINFER_INLINE F32x16 zero() { return {_mm512_setzero_ps()}; }
NINFER_INLINE F32x16 set1(float x) { return {_mm512_set1_ps(x)}; }
NINFER_INLINE F32x16 load(const float* p) { return {_mm512_loadu_ps(p)}; }
NINFER_INLINE F32x16 load_n(const float* p, std::int64_t n) { return {_mm512_maskz_loadu_ps(lane_mask(n), p)}; }
NINFER_INLINE void store(float* p, F32x16 a) { _mm512_storeu_ps(p, a.v); }
NINFER_INLINE void store_n(float* p, F32x16 a, std::int64_t n) { _mm512_mask_storeu_ps(p, lane_mask(n), a.v); }

NINFER_INLINE F32x16 add(F32x16 a, F32x16 b) { return {_mm512_add_ps(a.v, b.v)}; }
NINFER_INLINE F32x16 sub(F32x16 a, F32x16 b) { return {_mm512_sub_ps(a.v, b.v)}; }
NINFER_INLINE F32x16 mul(F32x16 a, F32x16 b) { return {_mm512_mul_ps(a.v, b.v)}; }
NINFER_INLINE F32x16 div(F32x16 a, F32x16 b) { return {_mm512_div_ps(a.v, b.v)}; }
NINFER_INLINE F32x16 sqrt(F32x16 a) { return {_mm512_sqrt_ps(a.v)}; }
NINFER_INLINE F32x16 fma(F32x16 a, F32x16 b, F32x16 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
NINFER_INLINE F32x16 max(F32x16 a, F32x16 b) { return {_mm512_max_ps(a.v, b.v)}; }
NINFER_INLINE F32x16 min(F32x16 a, F32x16 b) { return {_mm512_min_ps(a.v, b.v)}; }
NINFER_INLINE Mask16 lt(F32x16 a, F32x16 b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ); }
NINFER_INLINE F32x16 select(Mask16 m, F32x16 t, F32x16 f) { return {_mm512_mask_blend_ps(m, f.v, t.v)}; }
NINFER_INLINE F32x16 round_nearest_even(F32x16 a) {
    return {_mm512_roundscale_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)};
}
NINFER_INLINE F32x16 pow2(F32x16 n) {
    const __m512i biased = _mm512_add_epi32(_mm512_cvtps_epi32(n.v), _mm512_set1_epi32(127));
    return {_mm512_castsi512_ps(_mm512_slli_epi32(biased, 23))};
}

NINFER_INLINE F32x16 widen_bf16(__m256i bits) {
    return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16))};
}
NINFER_INLINE F32x16 load_bf16(const std::uint16_t* p) {
    return widen_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
// Round to nearest even on the bit pattern; vcvtneps2bf16 would flush denormals differently from the other variants.
NINFER_INLINE __m512i bf16_rounded_bits(F32x16 a) {
    const __m512i bits = _mm512_castps_si512(a.v);
    const __m512i lsb = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_add_epi32(bits, _mm512_add_epi32(lsb, _mm512_set1_epi32(0x7FFF)));
}
NINFER_INLINE F32x16 bf16_round(F32x16 a) {
    const __m512i kept = _mm512_and_si512(bf16_rounded_bits(a), _mm512_set1_epi32(static_cast<int>(0xFFFF0000U)));
    return {_mm512_castsi512_ps(kept)};
}
NINFER_INLINE __m256i to_bf16(F32x16 a) { return _mm512_cvtepi32_epi16(_mm512_srli_epi32(bf16_rounded_bits(a), 16)); }
NINFER_INLINE void store_bf16(std::uint16_t* p, F32x16 a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), to_bf16(a));
}
NINFER_INLINE void store_bf16_n(std::uint16_t* p, F32x16 a, std::int64_t n) {
    _mm256_mask_storeu_epi16(p, lane_mask(n), to_bf16(a));
}
NINFER_INLINE F32x16 load_f16(const std::uint16_t* p) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
NINFER_INLINE F32x16 load_i8(const std::int8_t* p) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(bytes))};
}

NINFER_INLINE float reduce_add(F32x16 a) {
    const __m256 low = _mm512_castps512_ps256(a.v);
    const __m256 high = _mm512_extractf32x8_ps(a.v, 1);
    const __m256 eight = _mm256_add_ps(low, high);
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
NINFER_INLINE float reduce_max(F32x16 a) { return _mm512_reduce_max_ps(a.v); }

}  // namespace ninfer::NINFER_ISA_NAMESPACE
