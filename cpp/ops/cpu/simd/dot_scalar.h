#pragma once

// Dot products for any x86-64 CPU, on its baseline SSE2: 4 outputs per vector. See dot.h for the contract.

#include <emmintrin.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/inline.h"
#include "cpp/ops/cpu/simd/vec_scalar.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

inline constexpr std::size_t kDotLanes = 4;
using FloatLanes = __m128;
using Quad = __m128i;  // two copies of four int16

NINFER_INLINE FloatLanes lanes_zero() { return _mm_setzero_ps(); }
NINFER_INLINE FloatLanes lanes_set1(float x) { return _mm_set1_ps(x); }
NINFER_INLINE FloatLanes lanes_load(const float* p) { return _mm_loadu_ps(p); }
NINFER_INLINE void lanes_store(float* p, FloatLanes a) { _mm_storeu_ps(p, a); }
NINFER_INLINE void lanes_store_n(float* p, FloatLanes a, std::int64_t n) {
    float all[4];
    _mm_storeu_ps(all, a);
    for (std::int64_t i = 0; i < n; ++i) p[i] = all[i];
}
NINFER_INLINE FloatLanes lanes_mul(FloatLanes a, FloatLanes b) { return _mm_mul_ps(a, b); }

// fma1 of vec_scalar.h for two lanes: a·b + c in double, rounded to odd.
NINFER_INLINE __m128d fma_to_odd(__m128d a, __m128d b, __m128d c) {
    const __m128d product = _mm_mul_pd(a, b);
    const __m128d sum = _mm_add_pd(product, c);
    const __m128d rounded_c = _mm_sub_pd(sum, product);
    const __m128d error = _mm_add_pd(_mm_sub_pd(product, _mm_sub_pd(sum, rounded_c)), _mm_sub_pd(c, rounded_c));
    const __m128d none = _mm_setzero_pd();
    const __m128i inexact = _mm_castpd_si128(_mm_or_pd(_mm_cmpgt_pd(error, none), _mm_cmplt_pd(error, none)));
    const __m128i bits = _mm_castpd_si128(sum);
    const __m128i one = _mm_set1_epi64x(1);
    // All ones where the last bit is 0; +1 where error and sum have one sign, else -1.
    const __m128i even = _mm_sub_epi64(_mm_and_si128(bits, one), one);
    const __m128i opposite = _mm_srli_epi64(_mm_xor_si128(bits, _mm_castpd_si128(error)), 63);
    const __m128i step = _mm_sub_epi64(one, _mm_add_epi64(opposite, opposite));
    return _mm_castsi128_pd(_mm_add_epi64(bits, _mm_and_si128(step, _mm_and_si128(even, inexact))));
}
NINFER_INLINE FloatLanes lanes_fma(FloatLanes a, FloatLanes b, FloatLanes c) {
    const __m128d low = fma_to_odd(_mm_cvtps_pd(a), _mm_cvtps_pd(b), _mm_cvtps_pd(c));
    const __m128d high = fma_to_odd(_mm_cvtps_pd(_mm_movehl_ps(a, a)), _mm_cvtps_pd(_mm_movehl_ps(b, b)),
                                    _mm_cvtps_pd(_mm_movehl_ps(c, c)));
    return _mm_movelh_ps(_mm_cvtpd_ps(low), _mm_cvtpd_ps(high));
}
NINFER_INLINE FloatLanes lanes_load_f16(const std::uint16_t* p) {
    return _mm_setr_ps(widen_f16_1(p[0]), widen_f16_1(p[1]), widen_f16_1(p[2]), widen_f16_1(p[3]));
}

NINFER_INLINE __m128i load_128(const std::byte* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }

using Bf16Input = float;
struct Bf16Weights {
    __m128 odd;
    __m128 even;
};
struct Bf16Pair {
    __m128 odd;
    __m128 even;
};
NINFER_INLINE void store_bf16_inputs(Bf16Input* p, F32x16 a, std::int64_t n) { store_n(p, bf16_round(a), n); }
NINFER_INLINE Bf16Weights load_bf16_weights(const std::byte* p) {
    const __m128i both = load_128(p);
    const __m128i odd = _mm_and_si128(both, _mm_set1_epi32(static_cast<int>(0xFFFF0000U)));
    return {_mm_castsi128_ps(odd), _mm_castsi128_ps(_mm_slli_epi32(both, 16))};
}
NINFER_INLINE Bf16Pair load_bf16_pair(const Bf16Input* p) { return {_mm_set1_ps(p[1]), _mm_set1_ps(p[0])}; }
NINFER_INLINE FloatLanes bf16_dot(FloatLanes acc, Bf16Weights weights, Bf16Pair pair) {
    return lanes_fma(weights.even, pair.even, lanes_fma(weights.odd, pair.odd, acc));
}

// Four bytes per output, widened to int16; pmaddwd leaves two int32 per output, which are added at the end of a group.
struct IntLanes {
    __m128i low;   // outputs 0 and 1
    __m128i high;  // outputs 2 and 3
};
NINFER_INLINE Quad load_quad(const std::int8_t* p) {
    std::int32_t value;
    __builtin_memcpy(&value, p, sizeof value);
    const __m128i bytes = _mm_cvtsi32_si128(value);
    const __m128i words = _mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8);
    return _mm_unpacklo_epi64(words, words);
}
NINFER_INLINE IntLanes dot_words(IntLanes sum, __m128i low_words, __m128i high_words, Quad quad) {
    return {_mm_add_epi32(sum.low, _mm_madd_epi16(low_words, quad)),
            _mm_add_epi32(sum.high, _mm_madd_epi16(high_words, quad))};
}
NINFER_INLINE FloatLanes sum_pairs(IntLanes sum) {
    const __m128 low = _mm_castsi128_ps(sum.low);
    const __m128 high = _mm_castsi128_ps(sum.high);
    const __m128i even = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
    const __m128i odd = _mm_castps_si128(_mm_shuffle_ps(low, high, _MM_SHUFFLE(3, 1, 3, 1)));
    return _mm_cvtepi32_ps(_mm_add_epi32(even, odd));
}

struct Q8Weights {
    __m128i low;
    __m128i high;
};
NINFER_INLINE Q8Weights load_q8_weights(const std::byte* p) {
    const __m128i bytes = load_128(p);
    return {_mm_srai_epi16(_mm_unpacklo_epi8(bytes, bytes), 8), _mm_srai_epi16(_mm_unpackhi_epi8(bytes, bytes), 8)};
}
NINFER_INLINE IntLanes q8_start(std::int32_t) { return {_mm_setzero_si128(), _mm_setzero_si128()}; }
NINFER_INLINE IntLanes q8_dot(IntLanes sum, Q8Weights weights, Quad quad) {
    return dot_words(sum, weights.low, weights.high, quad);
}
NINFER_INLINE FloatLanes q8_sum(IntLanes sum) { return sum_pairs(sum); }

struct Q4Weights {
    Q8Weights low;
    Q8Weights high;
};
NINFER_INLINE Q8Weights widen_nibbles(__m128i bytes) {
    const __m128i none = _mm_setzero_si128();
    return {_mm_unpacklo_epi8(bytes, none), _mm_unpackhi_epi8(bytes, none)};
}
NINFER_INLINE Q4Weights load_q4_weights(const std::byte* p) {
    const __m128i nibble = _mm_set1_epi8(0x0F);
    const __m128i both = load_128(p);
    return {widen_nibbles(_mm_and_si128(both, nibble)), widen_nibbles(_mm_and_si128(_mm_srli_epi16(both, 4), nibble))};
}
NINFER_INLINE IntLanes q4_start() { return {_mm_setzero_si128(), _mm_setzero_si128()}; }
NINFER_INLINE IntLanes q4_dot(IntLanes sum, Q8Weights half, Quad quad) {
    return dot_words(sum, half.low, half.high, quad);
}
NINFER_INLINE FloatLanes q4_sum(IntLanes sum) { return sum_pairs(sum); }

NINFER_INLINE void store_i8(std::int8_t* p, F32x16 a) {
    for (int i = 0; i < 16; ++i) p[i] = static_cast<std::int8_t>(_mm_cvtss_si32(_mm_set_ss(a.v[i])));
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
