#include "cpp/ops/gated_delta_rule.h"

#include <cmath>

#include "tests/ops/op_fixture.h"
#include "tests/ops/oracle/gated_delta_rule_oracle.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::test_seed;

constexpr double kShortestHalfLife = 4.0;
constexpr double kLongestHalfLife = 2000.0;

RecurrentStateLayout layout_of(std::int64_t key_heads, std::int64_t ratio, std::int64_t key_dim,
                               std::int64_t value_dim) {
    return {key_heads * ratio, key_heads, key_dim, value_dim, 4};
}

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

// A ragged batch of sequences whose states carry from call to call; decay rates give half-lives of 4 to 2,000 tokens.
struct Case {
    Case(RecurrentStateLayout layout_, std::vector<std::int64_t> counts_)
        : layout(layout_),
          counts(std::move(counts_)),
          qkv(total(), layout.conv_channels()),
          a(total(), layout.value_heads),
          b(total(), layout.value_heads),
          output(total(), layout.value_heads * layout.value_dim) {
        NormalSource normal(test_seed());
        qkv.fill(normal);
        a.fill(normal);
        b.fill(normal);
        for (std::int64_t h = 0; h < layout.value_heads; ++h) {
            dt_bias.push_back(static_cast<float>(normal() - 2.0));
            const double position =
                layout.value_heads == 1 ? 1.0 : static_cast<double>(h) / static_cast<double>(layout.value_heads - 1);
            const double half_life = kShortestHalfLife * std::pow(kLongestHalfLife / kShortestHalfLife, position);
            decay_rate.push_back(static_cast<float>(std::log(2.0) / half_life / std::log1p(std::exp(dt_bias.back()))));
        }
        states.assign(counts.size(), std::vector<float>(index(layout.recurrent_floats()), 0.0F));
        for (auto& state : states) fill_state(state, normal);
    }

    // Position of S[i][j] of head h.
    std::size_t at(std::int64_t h, std::int64_t i, std::int64_t j) const {
        const std::int64_t tile = j / kStateTileColumns;
        return index(h * layout.head_floats() + tile * kStateTileColumns * layout.key_dim +
                     i * layout.tile_columns(tile) + j % kStateTileColumns);
    }
    void fill_state(std::vector<float>& state, NormalSource& normal) const {
        for (std::int64_t h = 0; h < layout.value_heads; ++h)
            for (std::int64_t i = 0; i < layout.key_dim; ++i)
                for (std::int64_t j = 0; j < layout.value_dim; ++j)
                    state[at(h, i, j)] = static_cast<float>(normal() * 0.2);
    }

    std::int64_t total() const {
        std::int64_t sum = 0;
        for (const auto count : counts) sum += count;
        return sum;
    }
    std::int64_t first_row(std::size_t s) const {
        std::int64_t first = 0;
        for (std::size_t before = 0; before < s; ++before) first += counts[before];
        return first;
    }
    RecurrentSegment segment(std::size_t s, std::int64_t begin, std::int64_t count) {
        return {{first_row(s) + begin, count, begin}, {states[s].data(), states[s].data()}};
    }

    void run(const OpTable& ops, OpEnvironment& environment, const std::vector<RecurrentSegment>& segments) {
        ops.gated_delta_rule(environment.context(),
                             {layout, qkv.view(), a.view(), b.view(), decay_rate.data(), dt_bias.data(), output.view(),
                              segments.data(), static_cast<std::int64_t>(segments.size())});
    }
    void run_whole(const OpTable& ops, OpEnvironment& environment) {
        std::vector<RecurrentSegment> segments;
        for (std::size_t s = 0; s < counts.size(); ++s) segments.push_back(segment(s, 0, counts[s]));
        run(ops, environment, segments);
    }
    OpEnvironment environment(int threads) const {
        return OpEnvironment(threads, gated_delta_rule_scratch_bytes(total(), layout));
    }

    RecurrentStateLayout layout;
    std::vector<std::int64_t> counts;
    GuardedMatrix qkv;
    GuardedMatrix a;
    GuardedMatrix b;
    GuardedMatrix output;
    std::vector<float> decay_rate;
    std::vector<float> dt_bias;
    std::vector<std::vector<float>> states;
};

oracle::DeltaRuleHead oracle_head(const Case& test, const std::vector<float>& state, std::int64_t h) {
    oracle::DeltaRuleHead head{test.decay_rate[index(h)], test.dt_bias[index(h)], {}};
    for (std::int64_t i = 0; i < test.layout.key_dim; ++i) {
        head.state.emplace_back();
        for (std::int64_t j = 0; j < test.layout.value_dim; ++j) head.state.back().push_back(state[test.at(h, i, j)]);
    }
    return head;
}

oracle::DeltaRuleToken oracle_token(Case& test, std::int64_t row, std::int64_t h) {
    const auto& layout = test.layout;
    const std::int64_t key_head = h / (layout.value_heads / layout.key_heads);
    const std::int64_t key_floats = layout.key_heads * layout.key_dim;
    oracle::DeltaRuleToken token;
    for (std::int64_t i = 0; i < layout.key_dim; ++i) {
        token.q.push_back(test.qkv.at(row, key_head * layout.key_dim + i));
        token.k.push_back(test.qkv.at(row, key_floats + key_head * layout.key_dim + i));
    }
    for (std::int64_t j = 0; j < layout.value_dim; ++j)
        token.v.push_back(test.qkv.at(row, 2 * key_floats + h * layout.value_dim + j));
    token.a = test.a.at(row, h);
    token.b = test.b.at(row, h);
    return token;
}

struct Worst {
    double difference = 0.0;
    double scale = 0.0;
    void see(double found, double expected) {
        difference = std::max(difference, std::abs(found - expected));
        scale = std::max(scale, std::abs(expected));
    }
};

void expect_head_matches(Case& test, std::size_t s, const std::vector<float>& before, std::int64_t h) {
    auto head = oracle_head(test, before, h);
    Worst outputs;
    for (std::int64_t t = 0; t < test.counts[s]; ++t) {
        const std::int64_t row = test.first_row(s) + t;
        const auto expected = oracle::gated_delta_rule(head, oracle_token(test, row, h));
        for (std::int64_t j = 0; j < test.layout.value_dim; ++j)
            outputs.see(test.output.at(row, h * test.layout.value_dim + j), expected[index(j)]);
    }
    EXPECT_LE(outputs.difference, oracle::kGatedDeltaRuleTolerance * outputs.scale)
        << "output, sequence " << s << " head " << h;
    Worst states;
    for (std::int64_t i = 0; i < test.layout.key_dim; ++i)
        for (std::int64_t j = 0; j < test.layout.value_dim; ++j)
            states.see(test.states[s][test.at(h, i, j)], head.state[index(i)][index(j)]);
    EXPECT_LE(states.difference, oracle::kGatedDeltaRuleTolerance * states.scale)
        << "state, sequence " << s << " head " << h;
}

void expect_matches_oracle(const OpTable& ops, Case test) {
    SCOPED_TRACE(testing::Message() << "key_dim " << test.layout.key_dim << ", value_dim " << test.layout.value_dim
                                    << ", heads " << test.layout.value_heads << "/" << test.layout.key_heads);
    const auto before = test.states;
    auto environment = test.environment(2);
    test.run_whole(ops, environment);
    for (std::size_t s = 0; s < test.counts.size(); ++s)
        for (std::int64_t h = 0; h < test.layout.value_heads; ++h) expect_head_matches(test, s, before[s], h);
    test.output.expect_guards_intact();
}

// Padded columns of every state stay zero.
void expect_padding_zero(const Case& test) {
    for (const auto& state : test.states)
        for (std::int64_t h = 0; h < test.layout.value_heads; ++h)
            for (std::int64_t i = 0; i < test.layout.key_dim; ++i)
                for (std::int64_t j = test.layout.value_dim; j < test.layout.padded_value_dim(); ++j)
                    ASSERT_EQ(state[test.at(h, i, j)], 0.0F);
}

using GatedDeltaRuleTest = OpTest;

TEST_P(GatedDeltaRuleTest, MatchesOracleOverShapes) {
    for (const std::int64_t ratio : {1, 2, 4})
        for (const std::int64_t key_dim : {7, 8, 16, 32, 40, 128})
            for (const std::int64_t value_dim : {8, 16, 24, 32, 40, 64, 128})
                expect_matches_oracle(ops(), Case(layout_of(2, ratio, key_dim, value_dim), {3, 0, 1, 6}));
}

TEST_P(GatedDeltaRuleTest, MatchesOracleOverManyTokens) {
    expect_matches_oracle(ops(), Case(layout_of(2, 2, 32, 24), {320, 3, 400}));
    expect_matches_oracle(ops(), Case(layout_of(1, 4, 128, 32), {330}));
}

TEST_P(GatedDeltaRuleTest, SameBitsOnEveryInstructionSetChunkingAndThreadCount) {
    constexpr std::int64_t kTokens = 70;
    for (const std::int64_t value_dim : {8, 24, 32, 40, 128})
        for (const std::int64_t chunk : {1, 2, 7, 64, 70}) {
            const auto layout = layout_of(2, 2, 40, value_dim);
            Case scalar(layout, {kTokens, 5});
            Case here(layout, {kTokens, 5});
            auto one = scalar.environment(1);
            auto three = here.environment(3);
            scalar.run_whole(cpu_op_table(InstructionSet::kScalar), one);
            here.run(ops(), three, {here.segment(1, 0, 5)});
            for (std::int64_t begin = 0; begin < kTokens; begin += chunk)
                here.run(ops(), three, {here.segment(0, begin, std::min(chunk, kTokens - begin))});
            EXPECT_TRUE(here.output.equal_bits(scalar.output)) << value_dim << " " << chunk;
            EXPECT_EQ(here.states, scalar.states);
            expect_padding_zero(here);
        }
}

TEST_P(GatedDeltaRuleTest, SameBitsForAnyOrderOfSegmentsAndEveryThreadCount) {
    const std::vector<std::int64_t> counts{9, 0, 1, 6};
    for (const std::int64_t value_dim : {8, 40}) {
        Case expected(layout_of(2, 2, 40, value_dim), counts);
        auto one = expected.environment(1);
        expected.run_whole(cpu_op_table(InstructionSet::kScalar), one);
        for (const int threads : {1, 2, 3}) {
            Case reversed(layout_of(2, 2, 40, value_dim), counts);
            auto environment = reversed.environment(threads);
            std::vector<RecurrentSegment> segments;
            for (std::size_t s = counts.size(); s-- > 0;) segments.push_back(reversed.segment(s, 0, counts[s]));
            reversed.run(ops(), environment, segments);
            EXPECT_TRUE(reversed.output.equal_bits(expected.output)) << value_dim << ", " << threads << " threads";
            EXPECT_EQ(reversed.states, expected.states);
        }
    }
}

TEST_P(GatedDeltaRuleTest, WritesAnotherStateAndLeavesTheOneItReads) {
    for (const std::int64_t count : {0, 1, 2, 9}) {
        Case in_place(layout_of(2, 2, 16, 24), {count});
        Case apart(layout_of(2, 2, 16, 24), {count});
        auto environment = in_place.environment(2);
        in_place.run_whole(ops(), environment);
        const auto before = apart.states[0];
        std::vector<float> after(before.size(), -1.0F);
        apart.run(ops(), environment, {{{0, count, 0}, {apart.states[0].data(), after.data()}}});
        EXPECT_EQ(apart.states[0], before);
        EXPECT_EQ(after, in_place.states[0]);
        EXPECT_TRUE(apart.output.equal_bits(in_place.output));
    }
}

TEST_P(GatedDeltaRuleTest, TheStateIsStillSeenHundredsOfTokensLater) {
    const auto layout = layout_of(1, 2, 16, 16);
    Case remembers(layout, {300});
    Case forgot(layout, {300});
    for (auto& value : forgot.states[0]) value = 0.0F;
    auto environment = remembers.environment(1);
    remembers.run_whole(ops(), environment);
    forgot.run_whole(ops(), environment);
    double difference = 0.0;
    for (std::int64_t j = 0; j < 32; ++j)
        difference += std::abs(remembers.output.at(299, j) - forgot.output.at(299, j));
    EXPECT_GT(difference, 0.0);
}

NINFER_INSTANTIATE_OP_TEST(GatedDeltaRuleTest);

}  // namespace
}  // namespace ninfer
