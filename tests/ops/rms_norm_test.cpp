#include "cpp/ops/rms_norm.h"

#include "tests/ops/contract_suite.h"
#include "tests/ops/oracle/rms_norm_oracle.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::RowList;
using testing_support::test_seed;

constexpr float kEpsilon = 1e-6F;
constexpr std::int64_t kColumnCounts[] = {1, 2, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 200, 1024, 2049};

struct Case {
    Case(std::int64_t rows, std::int64_t columns, std::uint64_t seed)
        : input(rows, columns),
          residual(rows, columns),
          output(rows, columns),
          weight(static_cast<std::size_t>(columns)) {
        NormalSource normal(seed, 2.0);
        input.fill(normal);
        residual.fill(normal);
        for (auto& w : weight) w = static_cast<float>(normal());
    }
    RmsNormArgs args(bool with_residual) {
        return {input.view(), with_residual ? residual.view() : MatrixView{}, weight.data(), kEpsilon, output.view()};
    }
    GuardedMatrix input;
    GuardedMatrix residual;
    GuardedMatrix output;
    std::vector<float> weight;
};

using RmsNormTest = OpTest;

void expect_matches_oracle(const OpTable& ops, std::int64_t columns, bool with_residual) {
    SCOPED_TRACE(columns);
    constexpr std::int64_t kRows = 3;
    Case test(kRows, columns, test_seed() + static_cast<std::uint64_t>(columns));
    std::vector<float> x;
    for (std::int64_t r = 0; r < kRows; ++r)
        for (std::int64_t c = 0; c < columns; ++c)
            x.push_back(with_residual ? test.residual.at(r, c) + test.input.at(r, c) : test.input.at(r, c));
    OpEnvironment environment(2);
    ops.rms_norm(environment.context(), test.args(with_residual));
    const auto expected = oracle::rms_norm(x, test.weight, kEpsilon);
    double scale = 0.0;
    for (const double value : expected) scale = std::max(scale, std::abs(value));
    for (std::int64_t r = 0; r < kRows; ++r)
        for (std::int64_t c = 0; c < columns; ++c) {
            const auto i = static_cast<std::size_t>(r * columns + c);
            ASSERT_NEAR(test.output.at(r, c), expected[i], oracle::kRmsNormTolerance * scale);
            if (with_residual) {
                ASSERT_EQ(test.residual.at(r, c), x[i]);
            }
        }
    test.output.expect_guards_intact();
    test.residual.expect_guards_intact();
}

TEST_P(RmsNormTest, MatchesOracle) {
    for (const auto columns : kColumnCounts)
        for (const bool with_residual : {false, true}) expect_matches_oracle(ops(), columns, with_residual);
}

TEST_P(RmsNormTest, InPlace) {
    OpEnvironment environment;
    Case apart(2, 70, test_seed());
    Case inside(2, 70, test_seed());
    ops().rms_norm(environment.context(), apart.args(false));
    auto args = inside.args(false);
    args.output = inside.input.view();
    ops().rms_norm(environment.context(), args);
    EXPECT_TRUE(inside.input.equal_bits(apart.output));
}

TEST_P(RmsNormTest, AResidualOfAnotherShapeStopsTheProcess) {
    for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{2, 65}, {3, 64}, {1, 64}}) {
        Case test(2, 64, test_seed());
        test.residual = GuardedMatrix(rows, columns);
        EXPECT_DEATH(
            {
                OpEnvironment environment;
                ops().rms_norm(environment.context(), test.args(true));
            },
            "args.residual");
    }
}

// One call of the contract suite, with or without a residual.
struct RmsNormCase : Case {
    RmsNormCase(std::int64_t rows, std::int64_t columns, bool residual_added)
        : Case(rows, columns, test_seed()), with_residual(residual_added) {}
    static std::vector<RmsNormCase> contract_cases() {
        std::vector<RmsNormCase> cases;
        for (const auto columns : kColumnCounts)
            for (const bool with_residual : {false, true}) cases.emplace_back(9, columns, with_residual);
        return cases;
    }
    std::string name() const {
        return std::to_string(weight.size()) + " columns" + (with_residual ? " with residual" : "");
    }
    std::int64_t rows() const { return input.rows(); }
    RmsNormCase select(const RowList& rows) const {
        RmsNormCase result = *this;
        result.input = input.select(rows);
        result.residual = residual.select(rows);
        result.output = output.select(rows);
        return result;
    }
    std::size_t scratch_bytes(int) const { return 0; }
    void run(const OpTable& ops, OpContext& context) { ops.rms_norm(context, args(with_residual)); }
    std::vector<GuardedMatrix*> written() { return {&output, &residual}; }
    bool with_residual;
};
NINFER_INSTANTIATE_CONTRACT_SUITE(RmsNormCase);

NINFER_INSTANTIATE_OP_TEST(RmsNormTest);

}  // namespace
}  // namespace ninfer
