#pragma once

// Every thread that computes runs with flush-to-zero and denormals-are-zero and round-to-nearest (N-1 of
// docs/design/numerics.md), so that results do not depend on which thread or which caller's floating-point state
// computed them.

#include <xmmintrin.h>

namespace ninfer {

class FlushDenormals {
   public:
    FlushDenormals() noexcept : saved_(_mm_getcsr()) { _mm_setcsr(kComputeState); }
    ~FlushDenormals() { _mm_setcsr(saved_); }
    FlushDenormals(const FlushDenormals&) = delete;
    FlushDenormals& operator=(const FlushDenormals&) = delete;

   private:
    // All exceptions masked (0x1F80), FTZ (0x8000), DAZ (0x0040), round to nearest even.
    static constexpr unsigned kComputeState = 0x1F80U | 0x8000U | 0x0040U;
    unsigned saved_;
};

}  // namespace ninfer
