#include "cpp/ops/gated_rms_norm.h"

#include "tests/ops/contract_suite.h"
#include "tests/ops/oracle/gated_rms_norm_oracle.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::RowList;
using testing_support::test_seed;

constexpr float kEpsilon = 1e-6F;
constexpr std::int64_t kHeadDims[] = {1, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 128, 130};

struct Case {
    Case(std::int64_t rows, std::int64_t heads_, std::int64_t head_dim_)
        : heads(heads_),
          head_dim(head_dim_),
          input(rows, heads * head_dim),
          gate(rows, heads * head_dim, 5),
          output(rows, heads * head_dim),
          weight(static_cast<std::size_t>(head_dim)) {
        NormalSource normal(test_seed(), 3.0);
        input.fill(normal);
        gate.fill(normal);
        for (auto& w : weight) w = static_cast<float>(normal());
    }
    GatedRmsNormArgs args() {
        return {input.view(), gate.view(), weight.data(), kEpsilon, heads, head_dim, output.view()};
    }
    std::int64_t heads;
    std::int64_t head_dim;
    GuardedMatrix input;
    GuardedMatrix gate;
    GuardedMatrix output;
    std::vector<float> weight;
};

std::vector<float> head_values(GuardedMatrix& matrix, std::int64_t row, std::int64_t begin, std::int64_t count) {
    std::vector<float> values;
    for (std::int64_t c = 0; c < count; ++c) values.push_back(matrix.at(row, begin + c));
    return values;
}

using GatedRmsNormTest = OpTest;

TEST_P(GatedRmsNormTest, MatchesOracle) {
    for (const auto head_dim : kHeadDims) {
        SCOPED_TRACE(head_dim);
        Case test(3, 2, head_dim);
        OpEnvironment environment(2);
        ops().gated_rms_norm(environment.context(), test.args());
        for (std::int64_t r = 0; r < 3; ++r)
            for (std::int64_t begin = 0; begin < 2 * head_dim; begin += head_dim) {
                const auto expected =
                    oracle::gated_rms_norm(head_values(test.input, r, begin, head_dim),
                                           head_values(test.gate, r, begin, head_dim), test.weight, kEpsilon);
                double scale = 0.0;
                for (const double value : expected) scale = std::max(scale, std::abs(value));
                for (std::int64_t c = 0; c < head_dim; ++c)
                    ASSERT_NEAR(test.output.at(r, begin + c), expected[static_cast<std::size_t>(c)],
                                oracle::kGatedRmsNormTolerance * scale);
            }
        test.output.expect_guards_intact();
    }
}

TEST_P(GatedRmsNormTest, InPlace) {
    OpEnvironment environment;
    Case apart(2, 2, 70);
    Case inside(2, 2, 70);
    ops().gated_rms_norm(environment.context(), apart.args());
    auto args = inside.args();
    args.output = inside.input.view();
    ops().gated_rms_norm(environment.context(), args);
    EXPECT_TRUE(inside.input.equal_bits(apart.output));
}

struct GatedRmsNormCase : Case {
    using Case::Case;
    static std::vector<GatedRmsNormCase> contract_cases() {
        std::vector<GatedRmsNormCase> cases;
        for (const auto head_dim : kHeadDims) cases.emplace_back(9, 3, head_dim);
        return cases;
    }
    std::string name() const { return "heads of " + std::to_string(head_dim); }
    std::int64_t rows() const { return input.rows(); }
    GatedRmsNormCase select(const RowList& rows) const {
        GatedRmsNormCase result = *this;
        result.input = input.select(rows);
        result.gate = gate.select(rows);
        result.output = output.select(rows);
        return result;
    }
    std::size_t scratch_bytes(int) const { return 0; }
    void run(const OpTable& ops, OpContext& context) { ops.gated_rms_norm(context, args()); }
    std::vector<GuardedMatrix*> written() { return {&output}; }
};
NINFER_INSTANTIATE_CONTRACT_SUITE(GatedRmsNormCase);

NINFER_INSTANTIATE_OP_TEST(GatedRmsNormTest);

}  // namespace
}  // namespace ninfer
