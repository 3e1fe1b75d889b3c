#include "cpp/ops/rope_table.h"

#include <cmath>

#include "tests/ops/op_fixture.h"
#include "tests/ops/oracle/rope_table_oracle.h"

namespace ninfer {
namespace {

using testing_support::test_seed;

constexpr std::int64_t kMaxPosition = std::int64_t{1} << 22;

RopeFrequencies frequencies(double theta, std::int64_t rotary_dim) {
    RopeFrequencies result;
    for (std::int64_t i = 0; i < rotary_dim; i += 2)
        result.inverse.push_back(std::pow(theta, -static_cast<double>(i) / static_cast<double>(rotary_dim)));
    return result;
}

double ulp(float value) { return std::max(std::abs(std::nextafter(value, 2.0F) - value), 0x1p-149F); }

void expect_entry(float actual, long double expected, std::int64_t position, double inverse) {
    ASSERT_LE(std::abs(static_cast<double>(actual - expected)), oracle::kRopeTableTolerance * ulp(actual))
        << "position " << position << ", inverse frequency " << inverse;
}

void expect_positions(const RopeFrequencies& rope, const std::vector<std::int64_t>& positions) {
    std::vector<RowSegment> segments;
    for (const auto p : positions) segments.push_back({static_cast<std::int64_t>(segments.size()), 1, p});
    const std::size_t half = rope.inverse.size();
    std::vector<float> cosines(positions.size() * half);
    std::vector<float> sines(positions.size() * half);
    fill_rope_table(rope, segments.data(), static_cast<std::int64_t>(segments.size()), cosines.data(), sines.data());
    for (std::size_t r = 0; r < positions.size(); ++r)
        for (std::size_t i = 0; i < half; ++i) {
            const auto expected = oracle::rope_table(positions[r], rope.inverse[i]);
            expect_entry(cosines[r * half + i], expected.cosine, positions[r], rope.inverse[i]);
            expect_entry(sines[r * half + i], expected.sine, positions[r], rope.inverse[i]);
        }
}

TEST(RopeTableTest, MatchesOracleAtBoundariesAndRandomPositions) {
    SCOPED_TRACE(test_seed());
    std::mt19937_64 engine(test_seed());
    std::vector<std::int64_t> positions{0, 1, 2, 63, 64, 1023, 1024, 65535, kMaxPosition - 1, kMaxPosition};
    for (int i = 0; i < 2000; ++i) positions.push_back(static_cast<std::int64_t>(engine() % (kMaxPosition + 1)));
    for (const double theta : {10000.0, 100000.0, 1e6, 1e7}) expect_positions(frequencies(theta, 64), positions);
}

// Integers close to multiples of π / 2: the numerators of the convergents of its continued fraction.
TEST(RopeTableTest, CancellationNearMultiplesOfHalfPi) {
    expect_positions({{1.0}}, {11, 22, 33, 355, 710, 52174, 103993, 104348, 208341, 312689, 833719, 1146408});
}

TEST(RopeTableTest, ARowDependsOnItsPositionAlone) {
    const auto rope = frequencies(1e6, 32);
    const RowSegment together[] = {{2, 3, 100}, {0, 2, 7}};
    const RowSegment alone[] = {{0, 1, 102}};
    std::vector<float> cosines(5 * 16, 9.0F), sines(5 * 16, 9.0F), cosine(16), sine(16);
    fill_rope_table(rope, together, 2, cosines.data(), sines.data());
    fill_rope_table(rope, alone, 1, cosine.data(), sine.data());
    EXPECT_TRUE(std::equal(cosine.begin(), cosine.end(), cosines.begin() + 4 * 16));
    EXPECT_TRUE(std::equal(sine.begin(), sine.end(), sines.begin() + 4 * 16));
    fill_rope_table(rope, together, 0, nullptr, nullptr);
}

}  // namespace
}  // namespace ninfer
