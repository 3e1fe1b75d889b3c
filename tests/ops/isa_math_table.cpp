// Compiled once per instruction set, like the sources under cpp/ops/cpu.

#include "tests/ops/isa_math_table.h"

#include "cpp/ops/cpu/simd/math.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

void apply_exp(const float* input, float* output, std::size_t count) {
    for (std::size_t i = 0; i < count; i += 16) store(output + i, exp(load(input + i)));
}

void apply_sigmoid(const float* input, float* output, std::size_t count) {
    for (std::size_t i = 0; i < count; i += 16) store(output + i, sigmoid(load(input + i)));
}

void apply_silu(const float* input, float* output, std::size_t count) {
    for (std::size_t i = 0; i < count; i += 16) store(output + i, silu(load(input + i)));
}

void apply_log1p_unit(const float* input, float* output, std::size_t count) {
    for (std::size_t i = 0; i < count; i += 16) store(output + i, log1p_unit(load(input + i)));
}

void apply_softplus(const float* input, float* output, std::size_t count) {
    for (std::size_t i = 0; i < count; i += 16) store(output + i, softplus(load(input + i)));
}

void apply_log(const float* input, float* output, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) output[i] = log(input[i]);
}

}  // namespace

const testing_support::IsaMathTable kMathTable = {apply_exp,        apply_sigmoid,  apply_silu,
                                                  apply_log1p_unit, apply_softplus, apply_log};

}  // namespace ninfer::NINFER_ISA_NAMESPACE
