#pragma once

// Dot products of packed weights, one vector of output features at a time: what the linear kernels are written in. The
// vectors are as wide as the instruction set, so that accumulator tiles fit its registers; a panel of 16 outputs is
// kPanelVectors of them. Results are the same bits everywhere: integers are exact, every float operation rounds once.
//
// Each dot_*.h provides
//   kDotLanes, FloatLanes, IntLanes, Quad (four int8 activations for every lane)
//   lanes_zero lanes_set1 lanes_load lanes_store lanes_store_n lanes_mul lanes_fma lanes_load_f16
//   bf16  Bf16Input: element type in which rounded activations are kept; store_bf16_inputs(p, F32x16, n)
//         Bf16Weights load_bf16_weights(p): two inputs per output;  Bf16Pair load_bf16_pair(const Bf16Input*)
//         bf16_dot(acc, weights, pair): the odd input first, then the even one
//   q8    Q8Weights load_q8_weights(p);  q8_start(bias) q8_dot(sum, weights, quad) q8_sum(sum) -> FloatLanes, where
//   bias is
//         -128 · (sum of the group's activations) and is used only where the weights are made unsigned by adding 128
//   q4    Q4Weights load_q4_weights(p) with .low and .high;  q4_start() q4_dot(sum, half, quad) q4_sum(sum)
//   load_quad(p);  store_i8(p, F32x16): 16 integral values within int8

#include "cpp/ops/cpu/simd/vec.h"

#if defined(NINFER_ISA_AVX512)
#include "cpp/ops/cpu/simd/dot_avx512.h"
#elif defined(NINFER_ISA_AVX2)
#include "cpp/ops/cpu/simd/dot_avx2.h"
#else
#include "cpp/ops/cpu/simd/dot_scalar.h"
#endif

namespace ninfer::NINFER_ISA_NAMESPACE {

inline constexpr std::size_t kPanelVectors = 16 / kDotLanes;

}  // namespace ninfer::NINFER_ISA_NAMESPACE
