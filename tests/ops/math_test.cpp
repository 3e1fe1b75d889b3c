// The error bounds that cpp/ops/cpu/simd/math.h states, against the C library's f64, and its special values.

#include <cmath>
#include <limits>

#include "cpp/base/fp_environment.h"
#include "tests/ops/isa_math_table.h"
#include "tests/ops/op_fixture.h"

namespace ninfer {
namespace {

using testing_support::ArrayFunction;
using testing_support::isa_math_table;
using testing_support::OpTest;
using testing_support::test_seed;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::min();
constexpr float kDenormal = std::numeric_limits<float>::denorm_min();

// In ulp of the exact result, as the header states them.
constexpr double kExpUlp = 2.0;
constexpr double kSigmoidUlp = 4.0;
constexpr double kSiluUlp = 4.0;
constexpr double kLog1pUlp = 3.0;
constexpr double kLogUlp = 3.0;
constexpr double kSoftplusUlp = 4.0;

double exact_exp(double x) { return std::exp(x); }
double exact_sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
double exact_silu(double x) { return x / (1.0 + std::exp(-x)); }
double exact_log1p(double x) { return std::log1p(x); }
double exact_log(double x) { return std::log(x); }
double exact_softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

std::vector<float> apply(ArrayFunction function, std::vector<float> input) {
    const std::size_t count = input.size();
    input.resize((count + 15) / 16 * 16);
    std::vector<float> output(input.size());
    const FlushDenormals compute_state;
    function(input.data(), output.data(), input.size());
    output.resize(count);
    return output;
}

float apply(ArrayFunction function, float x) { return apply(function, std::vector<float>{x})[0]; }

// Every 2^-18 th of the range and its ends.
std::vector<float> sweep(double low, double high) {
    constexpr int kSteps = 1 << 18;
    std::vector<float> result;
    for (int i = 0; i <= kSteps; ++i) result.push_back(static_cast<float>(low + (high - low) * i / kSteps));
    return result;
}

// Random signs and magnitudes from 2^-40 to 2^6: small arguments too.
std::vector<float> spread() {
    std::mt19937_64 engine(test_seed());
    std::uniform_real_distribution<double> exponent(-40.0, 6.0);
    std::vector<float> result;
    for (int i = 0; i < 100000; ++i)
        result.push_back(static_cast<float>(std::exp2(exponent(engine)) * (engine() % 2 == 0 ? 1.0 : -1.0)));
    return result;
}

double ulp_of(double exact) { return std::ldexp(1.0, std::max(std::ilogb(exact), -126) - 23); }

void expect_within(ArrayFunction function, double (*exact)(double), double bound, const std::vector<float>& inputs) {
    const auto outputs = apply(function, inputs);
    double worst = 0.0;
    float worst_input = 0.0F;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
        const double expected = exact(inputs[i]);
        // Results below the normal range are flushed.
        const double slack = std::abs(expected) < 1.01 * kSmallest ? 1.01 * kSmallest : 0.0;
        const double error =
            std::max(std::abs(outputs[i] - expected) - slack, 0.0) / (expected == 0.0 ? 1.0 : ulp_of(expected));
        if (error > worst) {
            worst = error;
            worst_input = inputs[i];
        }
    }
    EXPECT_LE(worst, bound) << "at " << worst_input;
}

using MathTest = OpTest;

TEST_P(MathTest, ErrorsStayWithinTheStatedBounds) {
    const auto& table = isa_math_table(GetParam());
    for (const auto& inputs : {sweep(-87.3, 88.3), sweep(-1.0, 1.0), spread()}) {
        expect_within(table.exp, exact_exp, kExpUlp, inputs);
        expect_within(table.sigmoid, exact_sigmoid, kSigmoidUlp, inputs);
        expect_within(table.silu, exact_silu, kSiluUlp, inputs);
        expect_within(table.softplus, exact_softplus, kSoftplusUlp, inputs);
    }
    expect_within(table.log1p_unit, exact_log1p, kLog1pUlp, sweep(0.0, 1.0));
    auto small = spread();
    for (auto& x : small) x = std::min(std::abs(x), 1.0F);
    expect_within(table.log1p_unit, exact_log1p, kLog1pUlp, small);
    expect_within(table.log, exact_log, kLogUlp, sweep(0.01, 3.0));
    expect_within(table.log, exact_log, kLogUlp, sweep(1.0, 3e6));
    EXPECT_EQ(apply(table.log, 1.0F), 0.0F);
}

TEST_P(MathTest, ExpOfSpecialValues) {
    const auto exp = isa_math_table(GetParam()).exp;
    EXPECT_EQ(apply(exp, 0.0F), 1.0F);
    EXPECT_EQ(apply(exp, -0.0F), 1.0F);
    EXPECT_EQ(apply(exp, kDenormal), 1.0F);
    for (const float x : {-kInfinity, -kLargest, -1e10F, -88.0F}) EXPECT_EQ(apply(exp, x), 0.0F) << x;
    for (const float x : {88.3F, 89.0F, 1e10F, kLargest, kInfinity}) EXPECT_EQ(apply(exp, x), apply(exp, 88.3F)) << x;
    EXPECT_GT(apply(exp, 88.3F), 2e38F);
    EXPECT_TRUE(std::isfinite(apply(exp, 88.3F)));
    EXPECT_TRUE(std::isnan(apply(exp, kNan)));
}

TEST_P(MathTest, SigmoidAndSiluOfSpecialValues) {
    const auto& table = isa_math_table(GetParam());
    EXPECT_EQ(apply(table.sigmoid, 0.0F), 0.5F);
    EXPECT_EQ(apply(table.silu, 0.0F), 0.0F);
    for (const float x : {-kInfinity, -kLargest, -1e10F, -100.0F}) {
        EXPECT_EQ(apply(table.sigmoid, x), 0.0F) << x;
        EXPECT_EQ(apply(table.silu, x), 0.0F) << x;
    }
    for (const float x : {100.0F, 1e10F, kLargest, kInfinity}) {
        EXPECT_EQ(apply(table.sigmoid, x), 1.0F) << x;
        EXPECT_EQ(apply(table.silu, x), x) << x;
    }
    EXPECT_TRUE(std::isnan(apply(table.sigmoid, kNan)));
    EXPECT_TRUE(std::isnan(apply(table.silu, kNan)));
}

TEST_P(MathTest, SoftplusOfSpecialValues) {
    const auto softplus = isa_math_table(GetParam()).softplus;
    for (const float x : {-kInfinity, -kLargest, -100.0F}) EXPECT_EQ(apply(softplus, x), 0.0F) << x;
    for (const float x : {100.0F, 1e10F, kLargest, kInfinity}) EXPECT_EQ(apply(softplus, x), x) << x;
    EXPECT_TRUE(std::isnan(apply(softplus, kNan)));
}

// Softmax weights: a score just below the maximum never gets more than the maximum itself.
TEST_P(MathTest, WeightsOfScoresBelowTheMaximumNeverExceedOne) {
    const auto weights = apply(isa_math_table(GetParam()).exp, sweep(-0.01, 0.0));
    for (const float w : weights) ASSERT_LE(w, 1.0F);
}

TEST_P(MathTest, SameBitsOnEveryInstructionSet) {
    const auto& here = isa_math_table(GetParam());
    const auto& scalar = isa_math_table(InstructionSet::kScalar);
    auto inputs = sweep(-100.0, 100.0);
    for (const float x : spread()) inputs.push_back(x);
    for (const float x : {kInfinity, -kInfinity, kLargest, -kLargest, kSmallest, kDenormal, -0.0F}) inputs.push_back(x);
    const auto equal = [&](ArrayFunction a, ArrayFunction b) {
        const auto left = apply(a, inputs);
        const auto right = apply(b, inputs);
        return std::memcmp(left.data(), right.data(), left.size() * sizeof(float)) == 0;
    };
    EXPECT_TRUE(equal(here.exp, scalar.exp));
    EXPECT_TRUE(equal(here.sigmoid, scalar.sigmoid));
    EXPECT_TRUE(equal(here.silu, scalar.silu));
    EXPECT_TRUE(equal(here.softplus, scalar.softplus));
    for (auto& x : inputs) x = std::min(std::abs(x), 1.0F);
    EXPECT_TRUE(equal(here.log1p_unit, scalar.log1p_unit));
    for (auto& x : inputs) x += 1e-3F;
    EXPECT_TRUE(equal(here.log, scalar.log));
}

NINFER_INSTANTIATE_OP_TEST(MathTest);

}  // namespace
}  // namespace ninfer
