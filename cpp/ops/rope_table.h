#pragma once

// Rotary position tables (Su et al., 2021): cosine and sine of position · inverse_frequency[i], computed in f64 and
// rounded once to f32, so that a row depends on its absolute position alone (N-5 of docs/design/numerics.md).
//
// cosines, sines: [rows][rotary_dim / 2] f32. Positions up to 2^22. Our own argument reduction and polynomials: the
// results do not depend on the C library or on the CPU. Error <= 1 ulp of f32 for |angle| <= 2^22.

#include <cstdint>
#include <vector>

#include "cpp/ops/row_segment.h"

namespace ninfer {

// Inverse frequencies [rotary_dim / 2] in f64, scaling already applied by the loader.
struct RopeFrequencies {
    std::vector<double> inverse;
};

void fill_rope_table(const RopeFrequencies& frequencies, const RowSegment* segments, std::int64_t segment_count,
                     float* cosines, float* sines);

}  // namespace ninfer
