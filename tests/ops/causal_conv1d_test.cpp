#include "cpp/ops/causal_conv1d.h"

#include "tests/ops/op_fixture.h"
#include "tests/ops/oracle/causal_conv1d_oracle.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::test_seed;

constexpr std::int64_t kChannelCounts[] = {1, 15, 16, 17, 40, 255, 256, 257, 530};
constexpr std::int64_t kRows = 19;

using History = std::vector<float>;

// A ragged batch of sequences; the histories carry from call to call.
struct Case {
    Case(std::int64_t width_, std::int64_t channels_, std::vector<std::int64_t> counts_)
        : width(width_),
          channels(channels_),
          counts(std::move(counts_)),
          input(total(), channels),
          output(total(), channels) {
        NormalSource normal(test_seed(), 2.0);
        input.fill(normal);
        weight.resize(static_cast<std::size_t>(width * channels));
        for (auto& w : weight) w = static_cast<float>(normal());
        histories.resize(counts.size(), History(static_cast<std::size_t>((width - 1) * channels)));
        for (auto& history : histories)
            for (auto& x : history) x = static_cast<float>(normal());
    }

    std::int64_t total() const {
        std::int64_t sum = 0;
        for (const auto count : counts) sum += count;
        return sum;
    }

    // Rows [begin, begin + count) of sequence s, in place.
    ConvSegment segment(std::size_t s, std::int64_t begin, std::int64_t count) {
        std::int64_t first = begin;
        for (std::size_t before = 0; before < s; ++before) first += counts[before];
        return {{first, count, begin}, histories[s].data(), histories[s].data()};
    }

    void run(const OpTable& ops, OpEnvironment& environment, const std::vector<ConvSegment>& segments) {
        ops.causal_conv1d(environment.context(), {input.view(), weight.data(), width, output.view(), segments.data(),
                                                  static_cast<std::int64_t>(segments.size())});
    }
    void run_whole(const OpTable& ops, OpEnvironment& environment) {
        std::vector<ConvSegment> segments;
        for (std::size_t s = 0; s < counts.size(); ++s) segments.push_back(segment(s, 0, counts[s]));
        run(ops, environment, segments);
    }

    std::int64_t width;
    std::int64_t channels;
    std::vector<std::int64_t> counts;
    GuardedMatrix input;
    GuardedMatrix output;
    std::vector<float> weight;
    std::vector<History> histories;
};

using CausalConv1dTest = OpTest;

void expect_matches_oracle(const OpTable& ops, std::int64_t width, std::int64_t channels) {
    SCOPED_TRACE(testing::Message() << "width " << width << ", channels " << channels);
    Case test(width, channels, {kRows, 0, 1, width - 1, 3});
    const auto before = test.histories;
    OpEnvironment environment(2);
    test.run_whole(ops, environment);
    std::int64_t first = 0;
    for (std::size_t s = 0; s < test.counts.size(); first += test.counts[s], ++s)
        for (std::int64_t c = 0; c < channels; ++c) {
            std::vector<float> inputs;
            std::vector<float> taps;
            for (std::int64_t j = 0; j < width; ++j)
                taps.push_back(test.weight[static_cast<std::size_t>(j * channels + c)]);
            for (std::int64_t j = 0; j < width - 1; ++j)
                inputs.push_back(before[s][static_cast<std::size_t>(j * channels + c)]);
            for (std::int64_t r = 0; r < test.counts[s]; ++r) inputs.push_back(test.input.at(first + r, c));
            const auto expected = oracle::causal_conv1d(inputs, taps);
            for (std::int64_t r = 0; r < test.counts[s]; ++r)
                ASSERT_NEAR(test.output.at(first + r, c), expected[static_cast<std::size_t>(r)],
                            oracle::kCausalConv1dTolerance);
            for (std::int64_t j = 0; j < width - 1; ++j)
                ASSERT_EQ(test.histories[s][static_cast<std::size_t>(j * channels + c)],
                          inputs[static_cast<std::size_t>(test.counts[s] + j)]);
        }
    test.output.expect_guards_intact();
}

TEST_P(CausalConv1dTest, MatchesOracleAndCarriesHistory) {
    for (std::int64_t width = 1; width <= 8; ++width)
        for (const auto channels : kChannelCounts) expect_matches_oracle(ops(), width, channels);
}

TEST_P(CausalConv1dTest, SameBitsOnEveryInstructionSetChunkingAndThreadCount) {
    for (const std::int64_t width : {1, 2, 4, 8})
        for (const auto channels : kChannelCounts)
            for (const std::int64_t chunk : {1, 2, 3, 7, 18}) {
                Case scalar(width, channels, {kRows, 4});
                Case here(width, channels, {kRows, 4});
                OpEnvironment one(1);
                OpEnvironment three(3);
                scalar.run_whole(cpu_op_table(InstructionSet::kScalar), one);
                for (std::int64_t begin = 0; begin < kRows; begin += chunk)
                    here.run(ops(), three, {here.segment(0, begin, std::min(chunk, kRows - begin))});
                here.run(ops(), three, {here.segment(1, 0, 4)});
                EXPECT_TRUE(here.output.equal_bits(scalar.output)) << width << " " << channels << " " << chunk;
                EXPECT_EQ(here.histories, scalar.histories);
            }
}

TEST_P(CausalConv1dTest, SameBitsForAnyOrderOfSegmentsAndEveryThreadCount) {
    for (const auto channels : kChannelCounts) {
        const std::vector<std::int64_t> counts{kRows, 0, 1, 6};
        Case expected(4, channels, counts);
        OpEnvironment one(1);
        expected.run_whole(cpu_op_table(InstructionSet::kScalar), one);
        for (const int threads : {1, 2, 3}) {
            Case reversed(4, channels, counts);
            OpEnvironment environment(threads);
            std::vector<ConvSegment> segments;
            for (std::size_t s = counts.size(); s-- > 0;) segments.push_back(reversed.segment(s, 0, counts[s]));
            reversed.run(ops(), environment, segments);
            EXPECT_TRUE(reversed.output.equal_bits(expected.output)) << channels << ", " << threads << " threads";
            EXPECT_EQ(reversed.histories, expected.histories);
        }
    }
}

TEST_P(CausalConv1dTest, WritesAnotherHistoryAndLeavesTheOneItReads) {
    for (const std::int64_t count : {0, 1, 2, 3, 5}) {
        Case in_place(4, 70, {count});
        Case apart(4, 70, {count});
        OpEnvironment environment;
        in_place.run_whole(ops(), environment);
        const History before = apart.histories[0];
        History after(before.size(), -1.0F);
        auto segment = apart.segment(0, 0, count);
        segment.history_write = after.data();
        apart.run(ops(), environment, {segment});
        EXPECT_EQ(apart.histories[0], before);
        EXPECT_EQ(after, in_place.histories[0]);
        EXPECT_TRUE(apart.output.equal_bits(in_place.output));
    }
}

NINFER_INSTANTIATE_OP_TEST(CausalConv1dTest);

}  // namespace
}  // namespace ninfer
