#pragma once

// The elementary functions of cpp/ops/cpu/simd/math.h on arrays, once per instruction set, so that tests reach them.

#include <cstddef>

#include "cpp/base/cpu_features.h"

namespace ninfer::testing_support {

// output[i] = f(input[i]) for i < count, a multiple of 16, with denormals flushed as in compute threads.
using ArrayFunction = void (*)(const float* input, float* output, std::size_t count);

struct IsaMathTable {
    ArrayFunction exp;
    ArrayFunction sigmoid;
    ArrayFunction silu;
    ArrayFunction log1p_unit;
    ArrayFunction softplus;
    ArrayFunction log;
};

}  // namespace ninfer::testing_support

namespace ninfer::scalar {
extern const testing_support::IsaMathTable kMathTable;
}
namespace ninfer::avx2 {
extern const testing_support::IsaMathTable kMathTable;
}
namespace ninfer::avx512 {
extern const testing_support::IsaMathTable kMathTable;
}

namespace ninfer::testing_support {

inline const IsaMathTable& isa_math_table(InstructionSet isa) {
    return isa == InstructionSet::kScalar ? scalar::kMathTable
           : isa == InstructionSet::kAvx2 ? avx2::kMathTable
                                          : avx512::kMathTable;
}

}  // namespace ninfer::testing_support
