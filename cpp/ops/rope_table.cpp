#include "cpp/ops/rope_table.h"

#include "cpp/base/assert.h"

namespace ninfer {

namespace {

constexpr double kMaxAngle = 4194304.0;  // 2^22

// π/2 in three parts. The first two have 30 significant bits, so their products with a quadrant number below 2^22 are
// exact (Cody and Waite, 1980); the third holds the next 53 bits.
constexpr double kHalfPiHigh = 0x1.921fb54p+0;
constexpr double kHalfPiMiddle = 0x1.10b46118p-30;
constexpr double kHalfPiLow = 0x1.313198a2e0370p-61;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

// Taylor polynomials on |r| <= π/4: the first term left out is below 2^-58 of the result.
double sine_polynomial(double r) {
    const double r2 = r * r;
    double p = 1.0 / 355687428096000.0;
    p = p * r2 - 1.0 / 1307674368000.0;
    p = p * r2 + 1.0 / 6227020800.0;
    p = p * r2 - 1.0 / 39916800.0;
    p = p * r2 + 1.0 / 362880.0;
    p = p * r2 - 1.0 / 5040.0;
    p = p * r2 + 1.0 / 120.0;
    p = p * r2 - 1.0 / 6.0;
    return p * r2 * r + r;
}

double cosine_polynomial(double r) {
    const double r2 = r * r;
    double p = 1.0 / 20922789888000.0;
    p = p * r2 - 1.0 / 87178291200.0;
    p = p * r2 + 1.0 / 479001600.0;
    p = p * r2 - 1.0 / 3628800.0;
    p = p * r2 + 1.0 / 40320.0;
    p = p * r2 - 1.0 / 720.0;
    p = p * r2 + 1.0 / 24.0;
    p = p * r2 - 0.5;
    return p * r2 + 1.0;
}

struct SineCosine {
    double sine;
    double cosine;
};

SineCosine sine_cosine(double angle) {
    const auto quadrant = static_cast<std::int64_t>(angle * kTwoOverPi + 0.5);
    const auto n = static_cast<double>(quadrant);
    const double r = ((angle - n * kHalfPiHigh) - n * kHalfPiMiddle) - n * kHalfPiLow;
    const double s = sine_polynomial(r);
    const double c = cosine_polynomial(r);
    switch (quadrant % 4) {
        case 0:
            return {s, c};
        case 1:
            return {c, -s};
        case 2:
            return {-s, -c};
        default:
            return {-c, s};
    }
}

}  // namespace

void fill_rope_table(const RopeFrequencies& frequencies, const RowSegment* segments, std::int64_t segment_count,
                     float* cosines, float* sines) {
    const std::size_t half = frequencies.inverse.size();
    for (std::int64_t s = 0; s < segment_count; ++s) {
        const RowSegment& segment = segments[s];
        NINFER_ASSERT_LE(0, segment.first_position);
        for (std::int64_t r = 0; r < segment.row_count; ++r) {
            const auto position = static_cast<double>(segment.first_position + r);
            const std::size_t row = static_cast<std::size_t>(segment.row_begin + r) * half;
            for (std::size_t i = 0; i < half; ++i) {
                const double angle = position * frequencies.inverse[i];
                NINFER_ASSERT(angle >= 0.0 && angle <= kMaxAngle, "angle outside the range of the rope table");
                const SineCosine value = sine_cosine(angle);
                cosines[row + i] = static_cast<float>(value.cosine);
                sines[row + i] = static_cast<float>(value.sine);
            }
        }
    }
}

}  // namespace ninfer
