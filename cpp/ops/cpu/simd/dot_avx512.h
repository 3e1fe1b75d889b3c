#pragma once

// Dot products on AVX-512 with VNNI and BF16: 16 outputs per vector. See dot.h for the contract.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/inline.h"
#include "cpp/ops/cpu/simd/vec_avx512.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

inline constexpr std::size_t kDotLanes = 16;
using FloatLanes = __m512;
using IntLanes = __m512i;
using Quad = __m512i;

NINFER_INLINE FloatLanes lanes_zero() { return _mm512_setzero_ps(); }
NINFER_INLINE FloatLanes lanes_set1(float x) { return _mm512_set1_ps(x); }
NINFER_INLINE FloatLanes lanes_load(const float* p) { return _mm512_loadu_ps(p); }
NINFER_INLINE void lanes_store(float* p, FloatLanes a) { _mm512_storeu_ps(p, a); }
NINFER_INLINE void lanes_store_n(float* p, FloatLanes a, std::int64_t n) { _mm512_mask_storeu_ps(p, lane_mask(n), a); }
NINFER_INLINE FloatLanes lanes_mul(FloatLanes a, FloatLanes b) { return _mm512_mul_ps(a, b); }
NINFER_INLINE FloatLanes lanes_fma(FloatLanes a, FloatLanes b, FloatLanes c) { return _mm512_fmadd_ps(a, b, c); }
NINFER_INLINE FloatLanes lanes_load_f16(const std::uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}

NINFER_INLINE __m512i broadcast_4_bytes(const void* p) {
    std::int32_t value;
    __builtin_memcpy(&value, p, sizeof value);
    return _mm512_set1_epi32(value);
}

// vdpbf16ps multiplies and adds with one rounding each, the odd element first: the bits of two fma.
using Bf16Input = std::uint16_t;
using Bf16Weights = __m512bh;
using Bf16Pair = __m512bh;
NINFER_INLINE void store_bf16_inputs(Bf16Input* p, F32x16 a, std::int64_t n) { store_bf16_n(p, a, n); }
NINFER_INLINE Bf16Weights load_bf16_weights(const std::byte* p) {
    return reinterpret_cast<__m512bh>(_mm512_loadu_si512(p));
}
NINFER_INLINE Bf16Pair load_bf16_pair(const Bf16Input* p) { return reinterpret_cast<__m512bh>(broadcast_4_bytes(p)); }
NINFER_INLINE FloatLanes bf16_dot(FloatLanes acc, Bf16Weights weights, Bf16Pair pair) {
    return _mm512_dpbf16_ps(acc, weights, pair);
}

NINFER_INLINE Quad load_quad(const std::int8_t* p) { return broadcast_4_bytes(p); }

// vpdpbusd multiplies unsigned by signed bytes: the weights are shifted by 128, the sum starts at the bias that undoes
// it.
using Q8Weights = __m512i;
NINFER_INLINE Q8Weights load_q8_weights(const std::byte* p) {
    return _mm512_xor_si512(_mm512_loadu_si512(p), _mm512_set1_epi8(static_cast<char>(0x80)));
}
NINFER_INLINE IntLanes q8_start(std::int32_t bias) { return _mm512_set1_epi32(bias); }
NINFER_INLINE IntLanes q8_dot(IntLanes sum, Q8Weights weights, Quad quad) {
    return _mm512_dpbusd_epi32(sum, weights, quad);
}
NINFER_INLINE FloatLanes q8_sum(IntLanes sum) { return _mm512_cvtepi32_ps(sum); }

struct Q4Weights {
    __m512i low;
    __m512i high;
};
NINFER_INLINE Q4Weights load_q4_weights(const std::byte* p) {
    const __m512i nibble = _mm512_set1_epi8(0x0F);
    const __m512i both = _mm512_loadu_si512(p);
    return {_mm512_and_si512(both, nibble), _mm512_and_si512(_mm512_srli_epi16(both, 4), nibble)};
}
NINFER_INLINE IntLanes q4_start() { return _mm512_setzero_si512(); }
NINFER_INLINE IntLanes q4_dot(IntLanes sum, __m512i half, Quad quad) { return _mm512_dpbusd_epi32(sum, half, quad); }
NINFER_INLINE FloatLanes q4_sum(IntLanes sum) { return _mm512_cvtepi32_ps(sum); }

NINFER_INLINE void store_i8(std::int8_t* p, F32x16 a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(a.v)));
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
