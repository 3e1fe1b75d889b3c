#pragma once

// Sixteen f32 lanes on every instruction set, so that a kernel is written once and its results are the same bits
// everywhere (N-1 of docs/design/numerics.md): the lane count is logical, every operation is correctly rounded, fma is
// explicit.
//
// Sources under cpp/ops/cpu are compiled once per instruction set, inside namespace ninfer::NINFER_ISA_NAMESPACE. They
// use raw pointers and NINFER_INLINE functions only: no standard-library templates that could be emitted out of line.
//
// Each vec_*.h provides, with n = number of valid lanes (0..16) in the _n forms:
//   F32x16  zero set1 load load_n store store_n add sub mul div sqrt fma(a,b,c)=a*b+c max min round_nearest_even
//           lt(a,b)->Mask16 select(mask, if_true, if_false) pow2(n) = 2^n for integral n in [-126, 127]
//           lane_mask(n) -> Mask16 with the first n lanes set
//   from memory with conversion: load_bf16 load_f16 load_i8
//   to memory, nearest even: store_bf16 store_bf16_n
//   bf16_round(v): rounds to bfloat16 precision (nearest even) and back
//   reduce_add(v): fixed tree, lanes i and i+8, then i+4, i+2, i+1;  reduce_max(v)
// max and min follow maxps and minps: max(a, b) = a > b ? a : b.

#include <cstddef>
#include <cstdint>

#include "cpp/base/inline.h"

#if defined(NINFER_ISA_AVX512)
#include "cpp/ops/cpu/simd/vec_avx512.h"
#elif defined(NINFER_ISA_AVX2)
#include "cpp/ops/cpu/simd/vec_avx2.h"
#elif defined(NINFER_ISA_SCALAR)
#include "cpp/ops/cpu/simd/vec_scalar.h"
#else
#error "this header is only for the per-instruction-set objects"
#endif

namespace ninfer::NINFER_ISA_NAMESPACE {

inline constexpr std::int64_t kLanes = 16;

// Sum of 64 lanes held in four vectors (lane = index mod 64), the fixed tree of N-5 of docs/design/numerics.md.
NINFER_INLINE float reduce_add_64(F32x16 a, F32x16 b, F32x16 c, F32x16 d) {
    return reduce_add(add(add(a, b), add(c, d)));
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
