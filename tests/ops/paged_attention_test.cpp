#include "cpp/ops/paged_attention.h"

#include <cmath>
#include <memory>

#include "tests/ops/contract_suite.h"
#include "tests/ops/oracle/paged_attention_oracle.h"
#include "tests/ops/paged_fixture.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::kKvStorages;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::PagedCache;
using testing_support::RowList;
using testing_support::test_seed;

constexpr std::int64_t kPositions[] = {0, 1, 63, 64, 65, 127, 128, 1023, 1024, 1025, 1100};

struct Shape {
    KvStorage storage = KvStorage::kF32;
    std::int64_t heads = 2;
    std::int64_t kv_heads = 2;
    std::int64_t head_dim = 16;
};

// The rows of one sequence in a batch: its last `rows` positions.
struct Piece {
    std::int64_t rows;
    std::int64_t last_position;
};

AttentionShape attention_shape(const Shape& shape) {
    return {shape.heads, shape.kv_heads, shape.head_dim, 0, 2 * shape.head_dim};
}

std::vector<std::int64_t> capacities(const std::vector<Piece>& pieces) {
    std::vector<std::int64_t> result;
    for (const auto& piece : pieces) result.push_back(piece.last_position + 1);
    return result;
}

// One batch: sequence s contributes piece s. Positions up to the last one hold data, everything else is NaN.
struct Batch {
    Batch(const Shape& batch_shape, const std::vector<Piece>& batch_pieces)
        : shape(batch_shape),
          pieces(batch_pieces),
          cache({shape.storage, shape.kv_heads, shape.head_dim}, capacities(pieces), test_seed()),
          query(row_count(), shape.heads * 2 * shape.head_dim),
          output(row_count(), shape.heads * shape.head_dim) {
        NormalSource normal(test_seed() + 1);
        for (std::size_t s = 0; s < pieces.size(); ++s)
            for (std::int64_t p = 0; p <= pieces[s].last_position; ++p) cache.write_token(s, p, normal);
        query.fill(normal);
    }
    std::int64_t row_count() const {
        std::int64_t rows = 0;
        for (const auto& piece : pieces) rows += piece.rows;
        return rows;
    }
    std::vector<KvSegment> segments() {
        std::vector<KvSegment> result;
        std::int64_t row = 0;
        for (std::size_t s = 0; s < pieces.size(); ++s) {
            result.push_back({{row, pieces[s].rows, pieces[s].last_position + 1 - pieces[s].rows}, cache.view(s)});
            row += pieces[s].rows;
        }
        return result;
    }
    void run(const OpTable& ops, int threads, const std::vector<KvSegment>& segments) {
        OpEnvironment environment(threads, paged_attention_scratch_bytes(threads, attention_shape(shape)));
        ops.paged_attention(environment.context(),
                            {attention_shape(shape), softmax_scale(), query.view(), output.view(), segments.data(),
                             static_cast<std::int64_t>(segments.size())});
    }
    void run(const OpTable& ops, int threads) { run(ops, threads, segments()); }
    float softmax_scale() const { return 1.0F / std::sqrt(static_cast<float>(shape.head_dim)); }

    Shape shape;
    std::vector<Piece> pieces;
    PagedCache cache;
    GuardedMatrix query;
    GuardedMatrix output;
};

std::vector<std::vector<double>> dequantised(PagedCache& cache, std::size_t sequence, PagedCache::Plane plane,
                                             std::int64_t head, std::int64_t last_position) {
    std::vector<std::vector<double>> result;
    for (std::int64_t p = 0; p <= last_position; ++p) {
        auto& token = result.emplace_back();
        for (std::int64_t d = 0; d < cache.layout().head_dim; ++d)
            token.push_back(cache.value(sequence, plane, p, head, d));
    }
    return result;
}

void expect_row(Batch& batch, std::size_t sequence, std::int64_t row, std::int64_t position, std::int64_t head) {
    const Shape& shape = batch.shape;
    const std::int64_t kv_head = head / (shape.heads / shape.kv_heads);
    const auto keys = dequantised(batch.cache, sequence, PagedCache::Plane::kKeys, kv_head, position);
    const auto values = dequantised(batch.cache, sequence, PagedCache::Plane::kValues, kv_head, position);
    std::vector<float> query;
    for (std::int64_t d = 0; d < shape.head_dim; ++d)
        query.push_back(batch.query.at(row, head * 2 * shape.head_dim + d));
    double largest = 0.0;
    for (const auto& token : values)
        for (const double v : token) largest = std::max(largest, std::abs(v));
    const auto expected = oracle::attention(query, batch.softmax_scale(), keys, values);
    for (std::int64_t d = 0; d < shape.head_dim; ++d)
        ASSERT_NEAR(batch.output.at(row, head * shape.head_dim + d), expected[static_cast<std::size_t>(d)],
                    oracle::kPagedAttentionTolerance * largest)
            << "position " << position << ", head " << head << ", feature " << d;
}

void expect_batch_matches_oracle(Batch& batch) {
    std::int64_t row = 0;
    for (std::size_t s = 0; s < batch.pieces.size(); ++s)
        for (std::int64_t r = 0; r < batch.pieces[s].rows; ++r, ++row)
            for (std::int64_t h = 0; h < batch.shape.heads; ++h)
                expect_row(batch, s, row, batch.pieces[s].last_position + 1 - batch.pieces[s].rows + r, h);
    batch.output.expect_guards_intact();
}

void expect_matches_oracle(const OpTable& ops, const Shape& shape, const std::vector<Piece>& pieces, int threads) {
    SCOPED_TRACE(testing::Message() << to_string(shape.storage) << ", " << shape.heads << " heads, " << shape.kv_heads
                                    << " kv heads of " << shape.head_dim << ", " << threads << " threads");
    Batch batch(shape, pieces);
    batch.run(ops, threads);
    expect_batch_matches_oracle(batch);
}

// The bits of every row, computed one row at a time.
void run_row_by_row(Batch& batch, const OpTable& ops) {
    for (const auto& segment : batch.segments())
        for (std::int64_t r = 0; r < segment.rows.row_count; ++r)
            batch.run(ops, 1, {{{segment.rows.row_begin + r, 1, segment.rows.first_position + r}, segment.kv}});
}

std::vector<KvSegment> cut(const std::vector<KvSegment>& segments, std::int64_t chunk) {
    std::vector<KvSegment> result;
    for (const auto& segment : segments)
        for (std::int64_t r = 0; r < segment.rows.row_count; r += chunk)
            result.push_back({{segment.rows.row_begin + r, std::min(chunk, segment.rows.row_count - r),
                               segment.rows.first_position + r},
                              segment.kv});
    return result;
}

using PagedAttentionTest = OpTest;

TEST_P(PagedAttentionTest, DecodeMatchesOracleAtBoundaryPositions) {
    for (const auto storage : kKvStorages)
        for (const auto position : kPositions)
            expect_matches_oracle(ops(), {storage, 4, 2, 32}, {{1, position}}, position % 2 == 0 ? 1 : 3);
}

TEST_P(PagedAttentionTest, MatchesOracleForEveryGroupAndHeadDim) {
    for (const auto storage : kKvStorages) {
        for (const std::int64_t group : {1, 2, 4, 7})
            expect_matches_oracle(ops(), {storage, 2 * group, 2, 16}, {{3, 70}, {1, 5}, {9, 8}}, 2);
        for (const std::int64_t head_dim : {16, 32, 40, 64, 80, 128, 256})
            expect_matches_oracle(ops(), {storage, 2, 1, head_dim}, {{8, 66}, {1, 64}}, 2);
    }
}

TEST_P(PagedAttentionTest, MatchesOracleForAGroupLargerThanATile) {
    expect_matches_oracle(ops(), {KvStorage::kBf16, 50, 1, 16}, {{2, 64}}, 2);
}

TEST_P(PagedAttentionTest, PrefillMatchesOracle) {
    for (const auto storage : kKvStorages)
        expect_matches_oracle(ops(), {storage, 2, 1, 16}, {{130, 129}, {70, 133}}, 3);
}

// X1 of docs/design/numerics.md: one batch of segments, any chunking, any thread count and row by row give the same
// bits, on every instruction set.
TEST_P(PagedAttentionTest, SameBitsForAnyChunkingThreadCountAndInstructionSet) {
    for (const auto storage : kKvStorages)
        for (const Shape shape : {Shape{storage, 4, 2, 32}, Shape{storage, 7, 1, 40}, Shape{storage, 2, 2, 128}}) {
            SCOPED_TRACE(testing::Message() << to_string(storage) << " of " << shape.head_dim);
            const std::vector<Piece> pieces{{55, 1050}, {1, 1030}, {20, 19}, {5, 127}};
            Batch expected(shape, pieces);
            run_row_by_row(expected, ops());
            Batch batch(shape, pieces);
            // The scalar variant is slow; three chunk sizes and thread counts at once are enough there.
            const bool slow = GetParam() == InstructionSet::kScalar;
            for (const int threads : {1, 2, 3}) {
                for (const std::int64_t chunk : {100, 33, 7}) {
                    if (slow && (chunk + threads) % 3 != 0) continue;
                    batch.run(ops(), threads, cut(batch.segments(), chunk));
                    ASSERT_TRUE(batch.output.equal_bits(expected.output)) << threads << " threads, chunks of " << chunk;
                }
            }
            batch.run(cpu_op_table(InstructionSet::kScalar), 2);
            ASSERT_TRUE(batch.output.equal_bits(expected.output)) << "scalar";
        }
}

// A decode batch of few tiles is split into restarts of 1,024 keys, in several waves, and merged to the same bits.
TEST_P(PagedAttentionTest, SplitDecodeIsTheSameBitsAsOneThread) {
    for (const auto storage : kKvStorages) {
        const Shape shape{storage, 2, 1, 16};
        const std::vector<Piece> pieces{{1, 20000}, {2, 5119}, {1, 5120}};
        Batch expected(shape, pieces);
        expected.run(ops(), 1);
        for (const int threads : {2, 3}) {
            Batch batch(shape, pieces);
            batch.run(ops(), threads);
            EXPECT_TRUE(batch.output.equal_bits(expected.output))
                << to_string(storage) << ", " << threads << " threads";
        }
    }
}

// Scores of about 1e4, far beyond what e^x holds in f32 without the maximum taken off. Integers, and a scale of 1/4,
// keep the scores exact: a rounded score of that size would already be off by more than the tolerance.
TEST_P(PagedAttentionTest, LargeScoresMatchOracle) {
    Batch batch({KvStorage::kF32, 2, 1, 16}, {{4, 130}});
    NormalSource small(test_seed(), 4.0);
    NormalSource large(test_seed() + 1, 2000.0);
    for (std::int64_t p = 0; p <= 130; ++p) batch.cache.write_token(0, p, [&] { return std::round(small()); });
    batch.query.fill([&] { return std::round(large()); });
    ASSERT_EQ(batch.softmax_scale(), 0.25F);
    batch.run(ops(), 1);
    expect_batch_matches_oracle(batch);
}

TEST_P(PagedAttentionTest, NoSegmentsAndEmptySegmentsDoNothing) {
    Batch batch({KvStorage::kF32, 2, 1, 16}, {{2, 70}});
    Batch untouched({KvStorage::kF32, 2, 1, 16}, {{2, 70}});
    batch.run(ops(), 2, {});
    auto empty = batch.segments();
    empty[0].rows.row_count = 0;
    batch.run(ops(), 2, empty);
    EXPECT_TRUE(batch.output.equal_bits(untouched.output));
}

// Rows of several sequences for the contract suite; neighbours in a sequence that are neighbours in the batch make one
// segment.
struct PagedAttentionCase {
    explicit PagedAttentionCase(const Shape& case_shape)
        : source(std::make_shared<Batch>(case_shape, std::vector<Piece>{{9, 1028}, {1, 70}, {5, 127}})),
          query(source->query),
          output(source->output) {
        for (const auto& segment : source->segments())
            for (std::int64_t r = 0; r < segment.rows.row_count; ++r)
                tokens.push_back({{0, 1, segment.rows.first_position + r}, segment.kv});
    }
    static std::vector<PagedAttentionCase> contract_cases() {
        std::vector<PagedAttentionCase> cases;
        for (const auto storage : kKvStorages)
            for (const Shape shape : {Shape{storage, 4, 2, 32}, Shape{storage, 7, 1, 40}}) cases.emplace_back(shape);
        return cases;
    }
    std::string name() const {
        const Shape& shape = source->shape;
        return std::string(to_string(shape.storage)) + " heads of " + std::to_string(shape.head_dim);
    }
    std::int64_t rows() const { return query.rows(); }
    PagedAttentionCase select(const RowList& rows) const {
        PagedAttentionCase result = *this;
        result.query = query.select(rows);
        result.output = output.select(rows);
        result.tokens.clear();
        for (const auto row : rows) result.tokens.push_back(tokens[static_cast<std::size_t>(row)]);
        return result;
    }
    std::size_t scratch_bytes(int threads) const {
        return paged_attention_scratch_bytes(threads, attention_shape(source->shape));
    }
    void run(const OpTable& ops, OpContext& context) {
        std::vector<KvSegment> segments;
        for (std::size_t row = 0; row < tokens.size(); ++row) {
            KvSegment token = tokens[row];
            token.rows.row_begin = static_cast<std::int64_t>(row);
            KvSegment* const last = segments.empty() ? nullptr : &segments.back();
            if (last != nullptr && last->kv.page_table == token.kv.page_table &&
                last->rows.first_position + last->rows.row_count == token.rows.first_position)
                ++last->rows.row_count;
            else
                segments.push_back(token);
        }
        ops.paged_attention(context, {attention_shape(source->shape), source->softmax_scale(), query.view(),
                                      output.view(), segments.data(), std::ssize(segments)});
    }
    std::vector<GuardedMatrix*> written() { return {&output}; }

    std::shared_ptr<Batch> source;
    GuardedMatrix query;
    GuardedMatrix output;
    std::vector<KvSegment> tokens;  // one row each
};
NINFER_INSTANTIATE_CONTRACT_SUITE(PagedAttentionCase);

NINFER_INSTANTIATE_OP_TEST(PagedAttentionTest);

}  // namespace
}  // namespace ninfer
