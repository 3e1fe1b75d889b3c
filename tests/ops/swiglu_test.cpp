#include "cpp/ops/swiglu.h"

#include <cmath>

#include "tests/ops/contract_suite.h"
#include "tests/ops/oracle/swiglu_oracle.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::RowList;
using testing_support::test_seed;

constexpr std::int64_t kColumnCounts[] = {1, 15, 16, 17, 32, 33, 1023, 1024, 1025, 2064};

struct Case {
    Case(std::int64_t rows, std::int64_t columns) : gate(rows, columns), up(rows, columns), output(rows, columns) {
        NormalSource wide(test_seed() + static_cast<std::uint64_t>(columns), 20.0);
        NormalSource normal(test_seed() + 1);
        gate.fill(wide);
        up.fill(normal);
    }
    SwigluArgs args() { return {gate.view(), up.view(), output.view()}; }
    GuardedMatrix gate;
    GuardedMatrix up;
    GuardedMatrix output;
};

using SwigluTest = OpTest;

TEST_P(SwigluTest, MatchesOracle) {
    for (const auto columns : kColumnCounts) {
        Case test(3, columns);
        OpEnvironment environment(2);
        ops().swiglu(environment.context(), test.args());
        for (std::int64_t r = 0; r < 3; ++r)
            for (std::int64_t c = 0; c < columns; ++c) {
                const double expected = oracle::swiglu(test.gate.at(r, c), test.up.at(r, c));
                ASSERT_NEAR(test.output.at(r, c), expected,
                            oracle::kSwigluTolerance * std::abs(expected) + std::numeric_limits<float>::min())
                    << columns << " columns, gate " << test.gate.at(r, c);
            }
        test.output.expect_guards_intact();
    }
}

TEST_P(SwigluTest, OutputInTheMemoryOfAnOperand) {
    for (const auto columns : kColumnCounts) {
        OpEnvironment environment(2);
        Case apart(5, columns);
        ops().swiglu(environment.context(), apart.args());
        Case over_up(5, columns);
        auto args = over_up.args();
        args.output = over_up.up.view();
        ops().swiglu(environment.context(), args);
        EXPECT_TRUE(over_up.up.equal_bits(apart.output)) << columns;
        Case over_gate(5, columns);
        args = over_gate.args();
        args.output = over_gate.gate.view();
        ops().swiglu(environment.context(), args);
        EXPECT_TRUE(over_gate.gate.equal_bits(apart.output)) << columns;
    }
}

TEST_P(SwigluTest, GatesFarBelowZeroGiveZero) {
    Case test(1, 20);
    OpEnvironment environment;
    const float far[] = {-87.5F, -100.0F, -1e10F, -1e38F, -INFINITY};
    for (std::int64_t c = 0; c < 20; ++c) test.gate.at(0, c) = far[c % 5];
    ops().swiglu(environment.context(), test.args());
    for (std::int64_t c = 0; c < 20; ++c) EXPECT_EQ(test.output.at(0, c), 0.0F) << test.gate.at(0, c);
}

struct SwigluCase : Case {
    using Case::Case;
    static std::vector<SwigluCase> contract_cases() {
        std::vector<SwigluCase> cases;
        for (const auto columns : kColumnCounts) cases.emplace_back(9, columns);
        return cases;
    }
    std::string name() const { return std::to_string(gate.columns()) + " columns"; }
    std::int64_t rows() const { return gate.rows(); }
    SwigluCase select(const RowList& rows) const {
        SwigluCase result = *this;
        result.gate = gate.select(rows);
        result.up = up.select(rows);
        result.output = output.select(rows);
        return result;
    }
    std::size_t scratch_bytes(int) const { return 0; }
    void run(const OpTable& ops, OpContext& context) { ops.swiglu(context, args()); }
    std::vector<GuardedMatrix*> written() { return {&output}; }
};
NINFER_INSTANTIATE_CONTRACT_SUITE(SwigluCase);

NINFER_INSTANTIATE_OP_TEST(SwigluTest);

}  // namespace
}  // namespace ninfer
