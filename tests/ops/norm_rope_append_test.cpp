#include "cpp/ops/norm_rope_append.h"

#include <cmath>

#include "cpp/ops/rope_table.h"
#include "tests/ops/op_fixture.h"
#include "tests/ops/oracle/norm_rope_append_oracle.h"
#include "tests/ops/paged_fixture.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::kKvStorages;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::PagedCache;
using testing_support::test_seed;
using Plane = PagedCache::Plane;

constexpr float kEpsilon = 1e-6F;

struct Shape {
    KvStorage storage = KvStorage::kF32;
    std::int64_t heads = 4;
    std::int64_t kv_heads = 2;
    std::int64_t head_dim = 32;
    std::int64_t rotary_dim = 32;
    bool norms = false;
    std::int64_t query_head_stride = 64;
};

// Segments that begin and end on and beside page borders.
const std::vector<RowSegment> kSegments{{0, 3, 0}, {3, 1, 63}, {4, 2, 64}, {6, 70, 60}, {76, 1, 1100}, {77, 0, 5}};

struct Batch {
    explicit Batch(const Shape& batch_shape)
        : shape(batch_shape),
          rows(77),
          cache({shape.storage, shape.kv_heads, shape.head_dim}, {70, 64, 66, 130, 1101, 6}, test_seed()),
          query(rows, (shape.heads - 1) * shape.query_head_stride + shape.head_dim + 5),
          key(rows, shape.kv_heads * shape.head_dim),
          value(rows, shape.kv_heads * shape.head_dim) {
        NormalSource normal(test_seed() + 1, 2.0);
        query.fill(normal);
        key.fill(normal);
        value.fill(normal);
        for (std::int64_t d = 0; shape.norms && d < shape.head_dim; ++d) {
            query_norm.push_back(static_cast<float>(normal()));
            key_norm.push_back(static_cast<float>(normal()));
        }
        RopeFrequencies rope;
        for (std::int64_t i = 0; i < shape.rotary_dim; i += 2)
            rope.inverse.push_back(std::pow(1e4, -static_cast<double>(i) / static_cast<double>(shape.rotary_dim)));
        cosines.resize(static_cast<std::size_t>(rows) * rope.inverse.size());
        sines.resize(cosines.size());
        fill_rope_table(rope, kSegments.data(), static_cast<std::int64_t>(kSegments.size()), cosines.data(),
                        sines.data());
    }
    std::vector<KvSegment> segments() {
        std::vector<KvSegment> result;
        for (std::size_t s = 0; s < kSegments.size(); ++s) result.push_back({kSegments[s], cache.view(s)});
        return result;
    }
    void run(const OpTable& ops, int threads, const std::vector<KvSegment>& segments) {
        OpEnvironment environment(threads);
        NormRopeAppendArgs args;
        args.shape = {shape.heads, shape.kv_heads, shape.head_dim, shape.rotary_dim, shape.query_head_stride};
        args.query = query.view();
        args.key = key.view();
        args.value = value.view();
        args.query_norm = shape.norms ? query_norm.data() : nullptr;
        args.key_norm = shape.norms ? key_norm.data() : nullptr;
        args.epsilon = kEpsilon;
        args.cosines = cosines.data();
        args.sines = sines.data();
        args.segments = segments.data();
        args.segment_count = static_cast<std::int64_t>(segments.size());
        ops.norm_rope_append(environment.context(), args);
    }
    std::vector<double> expected_head(GuardedMatrix& matrix, std::int64_t row, std::int64_t begin,
                                      const std::vector<float>& norm) const {
        std::vector<float> head;
        for (std::int64_t d = 0; d < shape.head_dim; ++d) head.push_back(matrix.at(row, begin + d));
        const auto half = static_cast<std::ptrdiff_t>(shape.rotary_dim / 2);
        return oracle::norm_rope(head, norm, kEpsilon,
                                 {cosines.begin() + row * half, cosines.begin() + (row + 1) * half},
                                 {sines.begin() + row * half, sines.begin() + (row + 1) * half});
    }

    Shape shape;
    std::int64_t rows;
    PagedCache cache;
    GuardedMatrix query;
    GuardedMatrix key;
    GuardedMatrix value;
    std::vector<float> query_norm;
    std::vector<float> key_norm;
    std::vector<float> cosines;
    std::vector<float> sines;
};

double largest(const std::vector<double>& head, std::size_t begin = 0, std::size_t end = SIZE_MAX) {
    double result = 0.0;
    for (std::size_t d = begin; d < std::min(end, head.size()); ++d) result = std::max(result, std::abs(head[d]));
    return result;
}

// What the page holds against the exact value: within the rounding of its storage, besides the arithmetic's tolerance.
void expect_stored(Batch& batch, std::size_t sequence, Plane plane, std::int64_t position, std::int64_t head,
                   const std::vector<double>& expected) {
    const double tolerance = oracle::kNormRopeTolerance * largest(expected);
    for (std::size_t d = 0; d < expected.size(); ++d) {
        const auto feature = static_cast<std::int64_t>(d);
        const double stored = batch.cache.value(sequence, plane, position, head, feature);
        double rounding = 0.0;
        if (batch.shape.storage == KvStorage::kBf16) rounding = oracle::kBf16Rounding * std::abs(expected[d]);
        if (batch.shape.storage == KvStorage::kInt8) {
            const double scale = batch.cache.scale(sequence, plane, position, head, feature);
            ASSERT_NEAR(scale, largest(expected, d / 64 * 64, d / 64 * 64 + 64) / 127.0, tolerance / 127.0);
            rounding = oracle::kInt8Rounding * scale;
        }
        ASSERT_NEAR(stored, expected[d], rounding + tolerance)
            << "position " << position << ", head " << head << ", feature " << d;
    }
}

void expect_keys_and_values(Batch& batch, const Batch& before) {
    for (std::size_t s = 0; s < kSegments.size(); ++s)
        for (std::int64_t r = 0; r < kSegments[s].row_count; ++r)
            for (std::int64_t h = 0; h < batch.shape.kv_heads; ++h) {
                const std::int64_t row = kSegments[s].row_begin + r;
                const std::int64_t position = kSegments[s].first_position + r;
                const std::int64_t begin = h * batch.shape.head_dim;
                expect_stored(batch, s, Plane::kKeys, position, h,
                              before.expected_head(batch.key, row, begin, batch.key_norm));
                std::vector<double> value;
                for (std::int64_t d = 0; d < batch.shape.head_dim; ++d) value.push_back(batch.value.at(row, begin + d));
                expect_stored(batch, s, Plane::kValues, position, h, value);
            }
}

void expect_queries(Batch& batch, Batch& before) {
    const Shape& shape = batch.shape;
    for (std::int64_t row = 0; row < batch.rows; ++row)
        for (std::int64_t h = 0; h < shape.heads; ++h) {
            const std::int64_t begin = h * shape.query_head_stride;
            const auto expected = before.expected_head(before.query, row, begin, batch.query_norm);
            for (std::int64_t d = 0; d < shape.head_dim; ++d)
                ASSERT_NEAR(batch.query.at(row, begin + d), expected[static_cast<std::size_t>(d)],
                            oracle::kNormRopeTolerance * largest(expected))
                    << "row " << row << ", head " << h << ", feature " << d;
            // The gate between the heads stays as it was.
            const std::int64_t end = h + 1 < shape.heads ? begin + shape.query_head_stride : batch.query.view().columns;
            for (std::int64_t c = begin + shape.head_dim; c < end; ++c)
                ASSERT_EQ(batch.query.at(row, c), before.query.at(row, c));
        }
}

void expect_matches_oracle(const OpTable& ops, const Shape& shape) {
    SCOPED_TRACE(testing::Message() << to_string(shape.storage) << ", " << shape.heads << " heads, " << shape.kv_heads
                                    << " kv heads of " << shape.head_dim << ", rotary " << shape.rotary_dim
                                    << (shape.norms ? ", norms" : ""));
    Batch before(shape);
    Batch batch(shape);
    batch.run(ops, 2, batch.segments());
    expect_queries(batch, before);
    expect_keys_and_values(batch, before);
    batch.query.expect_guards_intact();
    // Nothing but the tokens of the batch was written.
    for (std::size_t s = 0; s < kSegments.size(); ++s)
        for (std::int64_t r = 0; r < kSegments[s].row_count; ++r)
            batch.cache.erase_token(s, kSegments[s].first_position + r);
    EXPECT_TRUE(batch.cache.all_garbage());
}

using NormRopeAppendTest = OpTest;

TEST_P(NormRopeAppendTest, MatchesOracle) {
    for (const auto storage : kKvStorages)
        for (const bool norms : {false, true}) {
            for (const std::int64_t head_dim : {16, 32, 40, 64, 80, 128, 256})
                for (const std::int64_t rotary_dim : {head_dim, head_dim / 4 * 2, std::int64_t{0}})
                    expect_matches_oracle(ops(), {storage, 2, 1, head_dim, rotary_dim, norms, 2 * head_dim});
            for (const std::int64_t group : {1, 2, 4, 7})
                expect_matches_oracle(ops(), {storage, 2 * group, 2, 16, 16, norms, 16});
        }
}

TEST_P(NormRopeAppendTest, SameBitsForAnyChunkingThreadCountAndInstructionSet) {
    for (const auto storage : kKvStorages)
        for (const std::int64_t head_dim : {40, 128}) {
            const Shape shape{storage, 4, 2, head_dim, head_dim / 2, true, 2 * head_dim};
            Batch expected(shape);
            expected.run(cpu_op_table(InstructionSet::kScalar), 1, expected.segments());
            for (const int threads : {1, 2, 3}) {
                Batch whole(shape);
                whole.run(ops(), threads, whole.segments());
                EXPECT_TRUE(whole.query.equal_bits(expected.query));
                EXPECT_TRUE(whole.cache.equal_bits(expected.cache));
                Batch by_row(shape);
                for (const auto& segment : by_row.segments())
                    for (std::int64_t r = 0; r < segment.rows.row_count; ++r)
                        by_row.run(ops(), threads,
                                   {{{segment.rows.row_begin + r, 1, segment.rows.first_position + r}, segment.kv}});
                EXPECT_TRUE(by_row.query.equal_bits(expected.query));
                EXPECT_TRUE(by_row.cache.equal_bits(expected.cache));
            }
        }
}

// A block of 64 features that is all zero has scale 0 and quants 0.
TEST_P(NormRopeAppendTest, ZeroKeysAndValuesStoreZeros) {
    for (const auto storage : kKvStorages) {
        Batch batch({storage, 2, 1, 80, 80, false, 80});
        batch.key.fill([] { return 0.0; });
        batch.value.fill([] { return 0.0; });
        batch.run(ops(), 1, batch.segments());
        for (std::int64_t d = 0; d < 80; ++d) {
            EXPECT_EQ(batch.cache.value(3, Plane::kKeys, 100, 0, d), 0.0);
            EXPECT_EQ(batch.cache.value(3, Plane::kValues, 100, 0, d), 0.0);
        }
    }
}

TEST_P(NormRopeAppendTest, NoSegmentsDoNothing) {
    Batch batch(Shape{});
    Batch before(Shape{});
    batch.run(ops(), 2, {});
    EXPECT_TRUE(batch.query.equal_bits(before.query));
    EXPECT_TRUE(batch.cache.all_garbage());
}

TEST_P(NormRopeAppendTest, WrongShapesStopTheProcess) {
    Batch short_key(Shape{});
    short_key.key = GuardedMatrix(short_key.rows - 1, 64);
    EXPECT_DEATH(short_key.run(ops(), 1, short_key.segments()), "args.key.rows");
    Batch short_value(Shape{});
    short_value.value = GuardedMatrix(short_value.rows - 1, 64);
    EXPECT_DEATH(short_value.run(ops(), 1, short_value.segments()), "args.value.rows");
    Batch negative(Shape{});
    auto segments = negative.segments();
    segments[1].rows.first_position = -1;
    EXPECT_DEATH(negative.run(ops(), 1, segments), "first_position");
    Batch wide({KvStorage::kF32, 1, 1, kMaxHeadDim + 2, 0, false, kMaxHeadDim + 2});
    EXPECT_DEATH(wide.run(ops(), 1, wide.segments()), "kMaxHeadDim");
}

TEST_P(NormRopeAppendTest, TheWidestHeadMatchesOracle) {
    for (const auto storage : kKvStorages)
        expect_matches_oracle(ops(), {storage, 1, 1, kMaxHeadDim, kMaxHeadDim, true, kMaxHeadDim});
}

NINFER_INSTANTIATE_OP_TEST(NormRopeAppendTest);

}  // namespace
}  // namespace ninfer
