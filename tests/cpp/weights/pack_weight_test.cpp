#include "cpp/weights/pack_weight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>

#include "cpp/memory/host_buffer.h"
#include "cpp/weights/float16.h"
#include "cpp/weights/unpack_weight.h"
#include "tests/cpp/weights/file_blocks.h"
#include "tests/support/test_seed.h"

namespace ninfer {
namespace {

using testing_support::EncodedMatrix;
using testing_support::half_value;
using testing_support::random_matrix;
using testing_support::test_seed;

constexpr FileEncoding kEncodings[] = {FileEncoding::kF32,  FileEncoding::kF16,  FileEncoding::kBf16,
                                       FileEncoding::kQ8_0, FileEncoding::kQ4_0, FileEncoding::kQ4_1};
constexpr WeightStorage kStorages[] = {WeightStorage::kF32, WeightStorage::kBf16, WeightStorage::kQ8,
                                       WeightStorage::kQ4};

class PackWeightTest : public testing::Test {
   protected:
    testing_support::SeedTrace seed_trace_;
};

bool is_plain(FileEncoding encoding) {
    return encoding == FileEncoding::kF32 || encoding == FileEncoding::kF16 || encoding == FileEncoding::kBf16;
}

bool keeps_values(FileEncoding encoding, WeightStorage storage) {
    switch (storage) {
        case WeightStorage::kF32:
            return true;
        case WeightStorage::kBf16:
            return encoding == FileEncoding::kBf16;
        case WeightStorage::kQ8:
            return encoding == FileEncoding::kQ8_0 || encoding == FileEncoding::kQ4_0;
        case WeightStorage::kQ4:
            return encoding == FileEncoding::kQ4_0 || encoding == FileEncoding::kQ4_1;
    }
    return false;
}

struct Packed {
    HostBuffer memory;
    std::vector<float> values;
};

Packed pack_and_unpack(const PackSource& source, WeightStorage storage, int threads = 2) {
    ThreadPool pool(threads);
    Packed result{HostBuffer(packed_weight_bytes(source.out_features, source.in_features, storage)), {}};
    std::fill_n(result.memory.data(), result.memory.size(), std::byte{0xA5});
    const auto packed = pack_weight(pool, source, storage, result.memory.data());
    EXPECT_TRUE(packed.has_value());
    result.values.resize(static_cast<std::size_t>(source.out_features * source.in_features));
    unpack_weight(packed.value(), result.values.data());
    return result;
}

PackSource source_of(const EncodedMatrix& matrix, FileEncoding encoding, std::int64_t out, std::int64_t in) {
    return {reinterpret_cast<const std::byte*>(matrix.bytes.data()), encoding, out, in};
}

// Largest |error| that the storage allows for the weights of one group.
double allowed_error(WeightStorage storage, const double* group, std::int64_t count) {
    const auto [low, high] = std::minmax_element(group, group + count);
    const double largest = std::max(std::abs(*low), std::abs(*high));
    constexpr double kHalfStep = 1.0 / 1024;  // f16 keeps 11 bits; subnormal f16 scales are 2^-24 apart
    constexpr double kSubnormal = 127 * 0x1p-24;
    if (storage == WeightStorage::kBf16) return largest / 256;
    if (storage == WeightStorage::kQ8) return largest / 127 * (0.5 + kHalfStep) + kSubnormal;
    // A fitted q4 range is at most a fifth narrower than the group's, its minimum half of that higher.
    return 0.15 * (std::max(*high, 0.0) - std::min(*low, 0.0)) + largest * 2 * kHalfStep + kSubnormal;
}

void expect_round_trip(FileEncoding encoding, WeightStorage storage, std::int64_t out, std::int64_t in,
                       std::uint64_t seed) {
    SCOPED_TRACE(std::string(to_string(encoding)) + " to " + std::string(to_string(storage)) + ", " +
                 std::to_string(out) + " x " + std::to_string(in));
    const EncodedMatrix matrix = random_matrix(encoding, out, in, seed);
    const Packed packed = pack_and_unpack(source_of(matrix, encoding, out, in), storage);
    for (std::int64_t o = 0; o < out; ++o)
        for (std::int64_t i = 0; i < in; ++i) {
            const auto index = static_cast<std::size_t>(o * in + i);
            if (keeps_values(encoding, storage)) {
                ASSERT_EQ(packed.values[index], static_cast<float>(matrix.values[index])) << o << ", " << i;
                continue;
            }
            const std::int64_t group = i / 32 * 32;
            const double allowed = allowed_error(storage, &matrix.values[static_cast<std::size_t>(o * in + group)],
                                                 std::min<std::int64_t>(32, in - group));
            ASSERT_NEAR(packed.values[index], matrix.values[index], allowed) << o << ", " << i;
        }
}

TEST_F(PackWeightTest, EveryEncodingIntoEveryStorage) {
    for (const auto encoding : kEncodings)
        for (const auto storage : kStorages)
            for (const std::int64_t out : {1, 15, 16, 17, 33})
                for (const std::int64_t in : {1, 2, 31, 32, 33, 64, 96})
                    if (is_plain(encoding) || in % 32 == 0) expect_round_trip(encoding, storage, out, in, test_seed());
}

TEST_F(PackWeightTest, PackingIsTheSameForEveryThreadCount) {
    const EncodedMatrix matrix = random_matrix(FileEncoding::kF32, 130, 70, test_seed());
    for (const auto storage : kStorages) {
        const Packed one = pack_and_unpack(source_of(matrix, FileEncoding::kF32, 130, 70), storage, 1);
        const Packed three = pack_and_unpack(source_of(matrix, FileEncoding::kF32, 130, 70), storage, 3);
        EXPECT_TRUE(std::equal(one.memory.data(), one.memory.data() + one.memory.size(), three.memory.data()));
    }
}

TEST_F(PackWeightTest, PaddingIsZero) {
    const EncodedMatrix matrix = random_matrix(FileEncoding::kF32, 3, 33, test_seed());
    for (const auto storage : kStorages) {
        const Packed packed = pack_and_unpack(source_of(matrix, FileEncoding::kF32, 3, 33), storage);
        const WeightView padded{packed.memory.data(), storage, 16, 33};
        std::vector<float> values(16 * 33);
        unpack_weight(padded, values.data());
        EXPECT_TRUE(std::all_of(values.begin() + 3 * 33, values.end(), [](float v) { return v == 0.0F; }));
    }
}

// Values chosen on the storage's own grid must come back exactly.
TEST_F(PackWeightTest, RepresentableWeightsSurviveQuantisation) {
    std::vector<float> q8_row(32);
    std::vector<float> q4_row(32);
    for (int i = 0; i < 32; ++i) {
        q8_row[static_cast<std::size_t>(i)] = 0.25F * static_cast<float>(i == 5 ? -127 : i * 7 - 100);
        q4_row[static_cast<std::size_t>(i)] = 0.125F * static_cast<float>(i % 16) - 0.75F;
    }
    const PackSource q8{reinterpret_cast<const std::byte*>(q8_row.data()), FileEncoding::kF32, 1, 32};
    const PackSource q4{reinterpret_cast<const std::byte*>(q4_row.data()), FileEncoding::kF32, 1, 32};
    EXPECT_EQ(pack_and_unpack(q8, WeightStorage::kQ8).values, q8_row);
    EXPECT_EQ(pack_and_unpack(q4, WeightStorage::kQ4).values, q4_row);
}

// Root-mean-square errors on normal weights, relative to their deviation. Q4_1's plain min-max rounding gives 0.078.
TEST_F(PackWeightTest, QuantisationErrorOfNormalWeights) {
    constexpr std::int64_t kOut = 64;
    constexpr std::int64_t kIn = 512;
    std::mt19937_64 engine(test_seed());
    std::normal_distribution<float> normal;
    std::vector<float> weights(kOut * kIn);
    for (float& w : weights) w = normal(engine);
    const PackSource source{reinterpret_cast<const std::byte*>(weights.data()), FileEncoding::kF32, kOut, kIn};
    const auto error_of = [&](WeightStorage storage) {
        const Packed packed = pack_and_unpack(source, storage);
        double sum = 0.0;
        for (std::size_t i = 0; i < weights.size(); ++i) sum += std::pow(packed.values[i] - weights[i], 2);
        return std::sqrt(sum / static_cast<double>(weights.size()));
    };
    const double q8 = error_of(WeightStorage::kQ8);
    const double q4 = error_of(WeightStorage::kQ4);
    RecordProperty("q8_rms_error", std::to_string(q8));
    RecordProperty("q4_rms_error", std::to_string(q4));
    EXPECT_LT(q8, 0.0060);
    EXPECT_LT(q4, 0.0745);
}

TEST_F(PackWeightTest, FirstUnusableWeightIsNamed) {
    ThreadPool pool(2);
    HostBuffer memory(packed_weight_bytes(40, 70, WeightStorage::kF32));
    for (const auto storage : kStorages) {
        std::vector<float> weights(40 * 70, 0.5F);
        const PackSource source{reinterpret_cast<const std::byte*>(weights.data()), FileEncoding::kF32, 40, 70};
        weights[35 * 70 + 2] = std::numeric_limits<float>::infinity();
        weights[17 * 70 + 69] = std::numeric_limits<float>::quiet_NaN();
        const auto refused = pack_weight(pool, source, storage, memory.data());
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().out_feature, 17);
        EXPECT_EQ(refused.error().in_feature, 69);
        EXPECT_EQ(refused.error().reason, "nan is not a finite weight");
    }
}

TEST_F(PackWeightTest, WeightsTooLargeForTheStorageAreRefused) {
    ThreadPool pool(1);
    HostBuffer memory(packed_weight_bytes(2, 64, WeightStorage::kF32));
    std::vector<float> weights(2 * 64, 0.5F);
    const PackSource source{reinterpret_cast<const std::byte*>(weights.data()), FileEncoding::kF32, 2, 64};
    const auto accepts = [&](WeightStorage storage, float largest) {
        weights[64 + 40] = largest;
        const auto packed = pack_weight(pool, source, storage, memory.data());
        if (packed) return true;
        EXPECT_EQ(packed.error().out_feature * 64 + packed.error().in_feature, 64 + 40);
        EXPECT_NE(packed.error().reason.find("too large for"), std::string::npos);
        return false;
    };
    EXPECT_TRUE(accepts(WeightStorage::kF32, 3.4028e38F));
    EXPECT_TRUE(accepts(WeightStorage::kBf16, 3.38e38F));
    EXPECT_FALSE(accepts(WeightStorage::kBf16, 3.4028e38F));
    EXPECT_TRUE(accepts(WeightStorage::kQ8, -65504.0F * 127));
    EXPECT_FALSE(accepts(WeightStorage::kQ8, 65536.0F * 127));
    EXPECT_TRUE(accepts(WeightStorage::kQ4, 900000.0F));
    EXPECT_FALSE(accepts(WeightStorage::kQ4, 1000000.0F));
}

TEST_F(PackWeightTest, BlocksWithInfiniteScalesAreRefused) {
    ThreadPool pool(1);
    HostBuffer memory(packed_weight_bytes(1, 32, WeightStorage::kF32));
    std::vector<std::uint8_t> block(34, 1);
    block[0] = 0x00;
    block[1] = 0x7C;
    const PackSource source{reinterpret_cast<const std::byte*>(block.data()), FileEncoding::kQ8_0, 1, 32};
    for (const auto storage : kStorages) EXPECT_FALSE(pack_weight(pool, source, storage, memory.data()).has_value());
}

TEST(Float16Test, EveryHalfConvertsExactlyAndBack) {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        const auto half = static_cast<std::uint16_t>(bits);
        if (!is_finite_f16(half)) continue;
        ASSERT_EQ(f16_to_f32(half), static_cast<float>(half_value(half)));
        ASSERT_EQ(f32_to_f16(f16_to_f32(half)), half);
    }
}

// Half-way points go to the even neighbour, anything past them to the nearer one.
TEST(Float16Test, RoundsToNearestEven) {
    for (std::uint32_t bits = 0; bits < 0x7BFF; ++bits) {
        const auto low = static_cast<std::uint16_t>(bits);
        const auto high = static_cast<std::uint16_t>(bits + 1);
        const float middle = static_cast<float>((half_value(low) + half_value(high)) / 2);
        ASSERT_EQ(f32_to_f16(middle), (bits & 1) == 0 ? low : high);
        ASSERT_EQ(f32_to_f16(std::nextafter(middle, 0.0F)), low);
        ASSERT_EQ(f32_to_f16(std::nextafter(middle, 1e9F)), high);
        ASSERT_EQ(f32_to_f16(-middle), ((bits & 1) == 0 ? low : high) | 0x8000);
    }
    EXPECT_EQ(f32_to_f16(65519.0F), 0x7BFF);
    EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00);
    EXPECT_EQ(f32_to_f16(1e-8F), 0);
}

}  // namespace
}  // namespace ninfer
