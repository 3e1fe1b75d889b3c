#include "cpp/ops/sampling.h"

#include <cmath>
#include <memory>

#include "cpp/ops/philox.h"
#include "tests/ops/contract_suite.h"
#include "tests/ops/oracle/sampling_oracle.h"
#include "tests/ops/sampling_fixture.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::kInfinity;
using testing_support::kNan;
using testing_support::NormalSource;
using testing_support::OpTest;
using testing_support::RowList;
using testing_support::sample_batch;
using testing_support::sample_one;
using testing_support::SamplingCase;
using testing_support::test_seed;

constexpr std::int64_t kVocabularies[] = {1, 2, 15, 16, 17, 33, 255, 256, 257, 4095, 4096, 4097, 9000};

using SamplingTest = OpTest;

// Greedy

TEST_P(SamplingTest, GreedyTakesTheBestAndTheLowestIdOfEquals) {
    for (const auto tokens : kVocabularies)
        for (const std::int64_t repeat : {0, 1, 2}) {
            auto test = SamplingCase::normal(tokens, 3.0, test_seed() + static_cast<std::uint64_t>(repeat), 5);
            const auto order = oracle::candidate_order(oracle::adjusted_logits(test.logits, test.input));
            EXPECT_EQ(sample_one(ops(), test).id, static_cast<std::int32_t>(order[0])) << tokens;
        }
    for (const std::size_t second : {1U, 20U, 300U, 4096U, 8999U}) {
        auto test = SamplingCase::normal(9000, 1.0, test_seed(), 1);
        test.padded[second] = test.padded[8999] = 50.0F;
        EXPECT_EQ(sample_one(ops(), test, 3).id, static_cast<std::int32_t>(second));
    }
}

TEST_P(SamplingTest, ExtremeLogits) {
    const auto best_of = [&](std::vector<float> values) {
        return sample_one(ops(), SamplingCase(std::move(values), 3)).id;
    };
    EXPECT_EQ(best_of({kNan, -5.0F, kNan}), 1);
    EXPECT_EQ(best_of({kNan, kNan}), -1);
    EXPECT_EQ(best_of({-kInfinity, -kInfinity, -kInfinity}), -1);
    EXPECT_EQ(best_of({-kInfinity, -3e38F}), 1);
    EXPECT_EQ(best_of({1.0F, kInfinity, kInfinity, kNan}), 1);
    EXPECT_EQ(best_of({-0.0F, 0.0F}), 0);
    for (const float temperature : {1e-38F, 1e-30F, 1.0F, 1e30F, 3e38F})
        for (const std::int32_t top_k : {0, 2}) {
            SamplingCase test({-kInfinity, kInfinity, kNan, 2.0F, kInfinity, 1e30F}, 3);
            test.input.temperature = temperature;
            test.input.top_k = top_k;
            for (test.input.output_index = 0; test.input.output_index < 40; ++test.input.output_index) {
                const auto id = sample_one(ops(), test).id;
                EXPECT_TRUE(id == 1 || id == 4) << id;
            }
        }
}

TEST_P(SamplingTest, AllForbiddenIsMinusOneAndStillReportsTheModel) {
    for (const float temperature : {0.0F, 1.0F})
        for (const std::int32_t top_k : {0, 3}) {
            SamplingCase test({3.0F, 1.0F, 2.0F, 0.0F}, 2);
            test.forbid({0, 1, 2, 3});
            test.input.temperature = temperature;
            test.input.top_k = top_k;
            test.input.top_p = 0.9F;
            test.input.logprobs = 2;
            const auto token = sample_one(ops(), test);
            EXPECT_EQ(token.id, -1);
            EXPECT_EQ(token.logprob, kImpossibleLogprob);
            EXPECT_EQ(token.top_count, 2);
            EXPECT_EQ(token.top_ids[0], 0);
            EXPECT_EQ(token.top_ids[1], 2);
        }
}

TEST_P(SamplingTest, MaskBiasAndPenaltiesComeInOrder) {
    for (const auto tokens : kVocabularies) {
        if (tokens < 15) continue;
        auto test = SamplingCase::normal(tokens, 2.0, test_seed(), 7);
        test.forbid({0, 3, static_cast<std::size_t>(tokens - 1)});
        test.add_bias({{3, 100.0F}, {5, 1.5F}, {5, 2.0F}, {static_cast<std::int32_t>(tokens - 2), 0.5F}});
        test.penalise(0.7F, 0.3F, 1.3F, test_seed());
        const auto adjusted = oracle::adjusted_logits(test.logits, test.input);
        EXPECT_EQ(sample_one(ops(), test).id, static_cast<std::int32_t>(oracle::candidate_order(adjusted)[0]))
            << tokens;
        test.input.bias_count = 0;
        test.input.token_mask = nullptr;
        test.input.repetition_penalty = 1.0F;
        test.input.seen_counts = nullptr;
        const auto penalised = oracle::adjusted_logits(test.logits, test.input);
        EXPECT_EQ(sample_one(ops(), test).id, static_cast<std::int32_t>(oracle::candidate_order(penalised)[0]))
            << tokens;
    }
}

// Draws

constexpr double kHeavy = 1e-3;

struct Filters {
    float temperature = 1.0F;
    std::int32_t top_k = 0;
    float top_p = 1.0F;
    float min_p = 0.0F;
};

constexpr Filters kFilters[] = {
    {1.0F, 0, 1.0F, 0.0F},     {0.3F, 0, 1.0F, 0.0F},    {5.0F, 0, 1.0F, 0.05F},  {1.0F, 1, 1.0F, 0.0F},
    {1.0F, 40, 1.0F, 0.0F},    {2.0F, 40, 0.9F, 0.0F},   {1.0F, 0, 0.9F, 0.0F},   {1.0F, 0, 0.5F, 0.1F},
    {0.7F, 20, 0.8F, 0.02F},   {1.0F, 0, 1e-12F, 0.0F},  {1.0F, 0, 0.999F, 0.0F}, {1e30F, 0, 0.95F, 0.0F},
    {1e-30F, 0, 0.95F, 0.0F},  {1.0F, 3000, 1.0F, 0.0F}, {3.0F, 0, 1.0F, 1.0F},   {1.0F, 50000, 1.0F, 0.0F},
    {20.0F, 300, 0.95F, 0.3F},
};

double uniform_of(const SamplerInput& input) {
    return std::ldexp(static_cast<double>(philox_bits(input.seed, input.output_index)), -64);
}

// The chosen token's share of [0, 1) holds u, up to what a token at a filter's border may shift.
void expect_drawn(const oracle::SamplingAnswer& answer, const SamplerInput& input, std::int32_t id) {
    ASSERT_GE(id, 0);
    double before = 0.0;
    for (std::int32_t i = 0; i < id; ++i) before += answer.probability[static_cast<std::size_t>(i)];
    const double share = answer.probability[static_cast<std::size_t>(id)];
    const double tolerance = oracle::kSamplingTolerance + answer.ambiguous;
    if (answer.ambiguous == 0.0) {
        ASSERT_GT(share, 0.0) << "dropped by a filter: " << id;
    }
    const double u = uniform_of(input);
    EXPECT_GE(u, before - tolerance);
    EXPECT_LE(u, before + share + tolerance);
}

void expect_draws_match(const OpTable& ops, SamplingCase& test, const Filters& filters) {
    SCOPED_TRACE(testing::Message() << test.tokens() << " tokens, temperature " << filters.temperature << ", top_k "
                                    << filters.top_k << ", top_p " << filters.top_p << ", min_p " << filters.min_p);
    test.input.temperature = filters.temperature;
    test.input.top_k = filters.top_k;
    test.input.top_p = filters.top_p;
    test.input.min_p = filters.min_p;
    const auto answer = oracle::filtered_distribution(oracle::adjusted_logits(test.logits, test.input), test.input);
    // A heavy token at a border says nothing here; random logits meet it about once in 10^5 runs.
    if (answer.ambiguous > kHeavy) return;
    std::vector<SamplerInput> inputs(12, test.input);
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].output_index = i;
    const auto tokens = sample_batch(ops, test, inputs);
    for (std::size_t i = 0; i < inputs.size(); ++i) expect_drawn(answer, inputs[i], tokens[i].id);
}

TEST_P(SamplingTest, DrawsMatchOracle) {
    for (const auto count : kVocabularies)
        for (const Filters& filters : kFilters) {
            auto test = SamplingCase::normal(count, 2.5, test_seed() + static_cast<std::uint64_t>(count), 9);
            test.input.seed = test_seed() * 77;
            expect_draws_match(ops(), test, filters);
            if (count < 15) continue;
            test.forbid({1, 2, static_cast<std::size_t>(count - 1)})
                .add_bias({{4, 3.0F}})
                .penalise(0.2F, 0.1F, 1.1F, 5);
            expect_draws_match(ops(), test, filters);
        }
}

TEST_P(SamplingTest, DrawsMatchOracleAmongTies) {
    for (const Filters& filters : kFilters) {
        auto test = SamplingCase::normal(5000, 1.0, test_seed(), 2);
        for (std::size_t i = 0; i < test.logits.size(); ++i)
            test.padded[i] = test.logits[i] = std::round(test.logits[i]);
        expect_draws_match(ops(), test, filters);
        SamplingCase flat(std::vector<float>(5000, 1.25F), 2);
        expect_draws_match(ops(), flat, filters);
    }
}

TEST_P(SamplingTest, WholeVocabularyOfALargeModel) {
    auto test = SamplingCase::normal(248077, 2.0, test_seed(), 243);
    for (const Filters& filters : kFilters) expect_draws_match(ops(), test, filters);
}

// Wilson and Hilferty: chi-square with n degrees of freedom exceeds this with probability 3e-7 (5 sigma).
double chi_square_limit(double n) {
    const double spread = 2.0 / (9.0 * n);
    return n * std::pow(1.0 - spread + 5.0 * std::sqrt(spread), 3.0);
}

TEST_P(SamplingTest, FrequenciesAreTheProbabilities) {
    constexpr std::size_t kBatch = 500;
    constexpr std::size_t kBatches = 200;
    auto test = SamplingCase::normal(50, 1.0, test_seed());
    test.input.temperature = 0.8F;
    test.input.seed = test_seed();
    const auto expected = oracle::filtered_distribution(oracle::adjusted_logits(test.logits, test.input), test.input);
    std::vector<double> counts(test.logits.size(), 0.0);
    std::vector<SamplerInput> inputs(kBatch, test.input);
    for (std::size_t batch = 0; batch < kBatches; ++batch) {
        for (std::size_t i = 0; i < kBatch; ++i) inputs[i].output_index = batch * kBatch + i;
        for (const auto& token : sample_batch(ops(), test, inputs, 1))
            counts[static_cast<std::size_t>(token.id)] += 1.0;
    }
    double statistic = 0.0;
    for (std::size_t i = 0; i < counts.size(); ++i) {
        const double wanted = expected.probability[i] * kBatch * kBatches;
        statistic += (counts[i] - wanted) * (counts[i] - wanted) / wanted;
    }
    EXPECT_LT(statistic, chi_square_limit(static_cast<double>(counts.size() - 1)));
}

// Log-probabilities

TEST_P(SamplingTest, LogprobsDescribeTheModel) {
    for (const auto count : kVocabularies)
        for (const std::int32_t wanted : {0, 1, 5, 20}) {
            auto test = SamplingCase::normal(count, 6.0, test_seed(), 4);
            if (count > 30) test.padded[7] = test.logits[7] = -kInfinity;
            if (count > 30) test.padded[9] = test.logits[9] = test.logits[8];
            test.add_bias({{0, 3.0F}});
            test.input.temperature = 0.7F;
            test.input.logprobs = wanted;
            const auto expected = oracle::log_probabilities(test.logits);
            const auto order = oracle::candidate_order({expected.begin(), expected.end()});
            const auto token = sample_one(ops(), test);
            EXPECT_NEAR(token.logprob, expected[static_cast<std::size_t>(token.id)], oracle::kLogprobTolerance);
            ASSERT_EQ(token.top_count, std::min<std::int64_t>(wanted, count));
            for (std::int32_t i = 0; i < token.top_count; ++i) {
                const auto id = order[static_cast<std::size_t>(i)];
                EXPECT_EQ(token.top_ids[i], static_cast<std::int32_t>(id));
                EXPECT_NEAR(token.top_logprobs[i], expected[id], oracle::kLogprobTolerance);
            }
        }
}

TEST_P(SamplingTest, ImpossibleTokensHaveALogprob) {
    SamplingCase test({-kInfinity, 1.0F, kNan}, 1);
    test.input.logprobs = 20;
    const auto token = sample_one(ops(), test);
    EXPECT_EQ(token.id, 1);
    EXPECT_EQ(token.logprob, 0.0F);
    EXPECT_EQ(token.top_count, 3);
    EXPECT_EQ(token.top_ids[1], 0);
    EXPECT_EQ(token.top_logprobs[1], kImpossibleLogprob);
    EXPECT_EQ(token.top_ids[2], 2);
    EXPECT_EQ(token.top_logprobs[2], kImpossibleLogprob);
}

// Exactness

// Rows of the contract suite: every combination of filters, half of them with penalties and a bias.
struct SampleCase {
    explicit SampleCase(std::int64_t token_count)
        : source(std::make_shared<SamplingCase>(SamplingCase::normal(token_count, 2.0, test_seed()))),
          logits(std::ssize(kFilters), token_count + 3),
          outputs(std::ssize(kFilters), kOutputFloats) {
        source->penalise(0.1F, 0.2F, 1.2F, 3).add_bias({{2, 1.5F}});
        NormalSource normal(test_seed() + 1, 2.0);
        logits.fill(normal);
        for (std::int64_t row = 0; row < rows(); ++row)
            for (std::int64_t padding = 0; padding < 3; ++padding) logits.at(row, token_count + padding) = kInfinity;
        for (const Filters& filters : kFilters) {
            auto& input = inputs.emplace_back(inputs.size() % 2 == 0 ? source->input : SamplerInput{});
            input.temperature = filters.temperature;
            input.top_k = filters.top_k;
            input.top_p = filters.top_p;
            input.min_p = filters.min_p;
            input.logprobs = static_cast<std::int32_t>(inputs.size() % 6) - 1;
            input.output_index = inputs.size();
        }
    }
    static std::vector<SampleCase> contract_cases() {
        return {SampleCase(17), SampleCase(257), SampleCase(4097), SampleCase(9000)};
    }
    std::string name() const { return std::to_string(source->tokens()) + " tokens"; }
    std::int64_t rows() const { return logits.rows(); }
    SampleCase select(const RowList& rows) const {
        SampleCase result = *this;
        result.logits = logits.select(rows);
        result.outputs = outputs.select(rows);
        result.inputs.clear();
        for (const auto row : rows) result.inputs.push_back(inputs[static_cast<std::size_t>(row)]);
        return result;
    }
    std::size_t scratch_bytes(int) const { return sampling_scratch_bytes(rows(), logits.columns()); }
    void run(const OpTable& ops, OpContext& context) {
        std::vector<SampledToken> tokens(inputs.size());
        ops.sample(context, {logits.view(), source->tokens(), inputs.data(), tokens.data()});
        for (std::size_t row = 0; row < tokens.size(); ++row)
            std::memcpy(&outputs.at(static_cast<std::int64_t>(row), 0), &tokens[row], sizeof(SampledToken));
    }
    std::vector<GuardedMatrix*> written() { return {&outputs}; }

    static constexpr std::int64_t kOutputFloats = sizeof(SampledToken) / sizeof(float);
    std::shared_ptr<SamplingCase> source;
    GuardedMatrix logits;
    GuardedMatrix outputs;  // the bytes of each row's SampledToken
    std::vector<SamplerInput> inputs;
};
NINFER_INSTANTIATE_CONTRACT_SUITE(SampleCase);

TEST_P(SamplingTest, FiltersThatKeepEverythingChangeNothing) {
    auto test = SamplingCase::normal(3000, 1.0, test_seed());
    test.input.temperature = 1.0F;
    for (test.input.output_index = 0; test.input.output_index < 50; ++test.input.output_index) {
        auto filtered = test.input;
        filtered.top_k = 3000 + static_cast<std::int32_t>(test.input.output_index % 2);
        filtered.min_p = 1e-20F;
        const auto tokens = sample_batch(ops(), test, {test.input, filtered});
        EXPECT_EQ(tokens[0].id, tokens[1].id);
    }
    EXPECT_TRUE(sample_batch(ops(), test, {}).empty());
}

NINFER_INSTANTIATE_OP_TEST(SamplingTest);

}  // namespace
}  // namespace ninfer
