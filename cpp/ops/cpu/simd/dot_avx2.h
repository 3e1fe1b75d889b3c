#pragma once

// Dot products on AVX2 + FMA + F16C: 8 outputs per vector. See dot.h for the contract.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/inline.h"
#include "cpp/ops/cpu/simd/vec_avx2.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

inline constexpr std::size_t kDotLanes = 8;
using FloatLanes = __m256;
using IntLanes = __m256i;
using Quad = __m256i;

NINFER_INLINE FloatLanes lanes_zero() { return _mm256_setzero_ps(); }
NINFER_INLINE FloatLanes lanes_set1(float x) { return _mm256_set1_ps(x); }
NINFER_INLINE FloatLanes lanes_load(const float* p) { return _mm256_loadu_ps(p); }
NINFER_INLINE void lanes_store(float* p, FloatLanes a) { _mm256_storeu_ps(p, a); }
NINFER_INLINE void lanes_store_n(float* p, FloatLanes a, std::int64_t n) { _mm256_maskstore_ps(p, lane_mask_8(n), a); }
NINFER_INLINE FloatLanes lanes_mul(FloatLanes a, FloatLanes b) { return _mm256_mul_ps(a, b); }
NINFER_INLINE FloatLanes lanes_fma(FloatLanes a, FloatLanes b, FloatLanes c) { return _mm256_fmadd_ps(a, b, c); }
NINFER_INLINE FloatLanes lanes_load_f16(const std::uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}

NINFER_INLINE __m256i load_256(const std::byte* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

using Bf16Input = float;
struct Bf16Weights {
    __m256 odd;
    __m256 even;
};
struct Bf16Pair {
    __m256 odd;
    __m256 even;
};
NINFER_INLINE void store_bf16_inputs(Bf16Input* p, F32x16 a, std::int64_t n) { store_n(p, bf16_round(a), n); }
NINFER_INLINE Bf16Weights load_bf16_weights(const std::byte* p) {
    const __m256i both = load_256(p);
    const __m256i odd = _mm256_and_si256(both, _mm256_set1_epi32(static_cast<int>(0xFFFF0000U)));
    return {_mm256_castsi256_ps(odd), _mm256_castsi256_ps(_mm256_slli_epi32(both, 16))};
}
NINFER_INLINE Bf16Pair load_bf16_pair(const Bf16Input* p) { return {_mm256_set1_ps(p[1]), _mm256_set1_ps(p[0])}; }
NINFER_INLINE FloatLanes bf16_dot(FloatLanes acc, Bf16Weights weights, Bf16Pair pair) {
    return _mm256_fmadd_ps(weights.even, pair.even, _mm256_fmadd_ps(weights.odd, pair.odd, acc));
}

NINFER_INLINE Quad load_quad(const std::int8_t* p) {
    std::int32_t value;
    __builtin_memcpy(&value, p, sizeof value);
    return _mm256_set1_epi32(value);
}

// vpmaddubsw multiplies unsigned by signed bytes and saturates at 16 bits: |w| times the activation with w's sign gives
// pairs of at most 2 · 128 · 127, which fit.
struct Q8Weights {
    __m256i magnitude;
    __m256i signs;
};
NINFER_INLINE Q8Weights load_q8_weights(const std::byte* p) {
    const __m256i weights = load_256(p);
    return {_mm256_abs_epi8(weights), weights};
}
NINFER_INLINE IntLanes q8_start(std::int32_t) { return _mm256_setzero_si256(); }
NINFER_INLINE IntLanes q8_dot(IntLanes sum, Q8Weights weights, Quad quad) {
    const __m256i pairs = _mm256_maddubs_epi16(weights.magnitude, _mm256_sign_epi8(quad, weights.signs));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
NINFER_INLINE FloatLanes q8_sum(IntLanes sum) { return _mm256_cvtepi32_ps(sum); }

// A group's eight pairs of at most 2 · 15 · 127 add up within 16 bits, so that widening is done once per group.
struct Q4Weights {
    __m256i low;
    __m256i high;
};
NINFER_INLINE Q4Weights load_q4_weights(const std::byte* p) {
    const __m256i nibble = _mm256_set1_epi8(0x0F);
    const __m256i both = load_256(p);
    return {_mm256_and_si256(both, nibble), _mm256_and_si256(_mm256_srli_epi16(both, 4), nibble)};
}
NINFER_INLINE IntLanes q4_start() { return _mm256_setzero_si256(); }
NINFER_INLINE IntLanes q4_dot(IntLanes sum, __m256i half, Quad quad) {
    return _mm256_add_epi16(sum, _mm256_maddubs_epi16(half, quad));
}
NINFER_INLINE FloatLanes q4_sum(IntLanes sum) {
    return _mm256_cvtepi32_ps(_mm256_madd_epi16(sum, _mm256_set1_epi16(1)));
}

NINFER_INLINE void store_i8(std::int8_t* p, F32x16 a) {
    const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(a.lo), _mm256_cvtps_epi32(a.hi));
    // The packing works within 128-bit halves; the permutation restores lane order.
    const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
    const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
