#include "cpp/ops/swiglu.h"

#include <cmath>

#include "tests/ops/op_fixture.h"
#include "tests/ops/oracle/swiglu_oracle.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
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

TEST_P(SwigluTest, SameBitsOnEveryInstructionSetAndThreadCountAndInPlace) {
    for (const auto columns : kColumnCounts) {
        Case scalar(5, columns);
        Case here(5, columns);
        OpEnvironment one(1);
        OpEnvironment three(3);
        cpu_op_table(InstructionSet::kScalar).swiglu(one.context(), scalar.args());
        ops().swiglu(three.context(), here.args());
        EXPECT_TRUE(here.output.equal_bits(scalar.output)) << columns;
        auto in_place = here.args();
        in_place.output = here.up.view();
        ops().swiglu(one.context(), in_place);
        EXPECT_TRUE(here.up.equal_bits(scalar.output)) << columns;
    }
}

TEST_P(SwigluTest, GatesFarBelowZeroGiveZeroAndNoRowsDoNothing) {
    Case test(1, 20);
    OpEnvironment environment;
    const float far[] = {-87.5F, -100.0F, -1e10F, -1e38F, -INFINITY};
    for (std::int64_t c = 0; c < 20; ++c) test.gate.at(0, c) = far[c % 5];
    ops().swiglu(environment.context(), test.args());
    for (std::int64_t c = 0; c < 20; ++c) EXPECT_EQ(test.output.at(0, c), 0.0F) << test.gate.at(0, c);
    Case empty(0, 20);
    ops().swiglu(environment.context(), empty.args());
    empty.output.expect_guards_intact();
}

NINFER_INSTANTIATE_OP_TEST(SwigluTest);

}  // namespace
}  // namespace ninfer
