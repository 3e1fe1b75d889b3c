#include "cpp/ops/sigmoid_gate.h"

#include <cmath>

#include "tests/ops/contract_suite.h"
#include "tests/ops/oracle/sigmoid_gate_oracle.h"

namespace ninfer {
namespace {

using testing_support::GuardedMatrix;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::RowList;
using testing_support::test_seed;

constexpr std::int64_t kHeadDims[] = {1, 15, 16, 17, 40, 64, 256};

// The heads of the gate lie gate_head_stride columns apart.
struct Case {
    Case(std::int64_t rows, std::int64_t head_count, std::int64_t dim, std::int64_t stride)
        : heads(head_count),
          head_dim(dim),
          gate_head_stride(stride),
          values(rows, head_count * dim),
          gate(rows, head_count * stride) {
        NormalSource wide(test_seed() + static_cast<std::uint64_t>(dim), 20.0);
        NormalSource normal(test_seed() + 1);
        values.fill(normal);
        gate.fill(wide);
    }
    SigmoidGateArgs args() { return {values.view(), gate.view(), heads, head_dim, gate_head_stride}; }
    std::int64_t heads;
    std::int64_t head_dim;
    std::int64_t gate_head_stride;
    GuardedMatrix values;
    GuardedMatrix gate;
};

using SigmoidGateTest = OpTest;

void expect_matches_oracle(const OpTable& ops, std::int64_t head_dim, std::int64_t stride) {
    constexpr std::int64_t kRows = 3;
    constexpr std::int64_t kHeads = 3;
    Case before(kRows, kHeads, head_dim, stride);
    Case test(kRows, kHeads, head_dim, stride);
    OpEnvironment environment(2);
    ops.sigmoid_gate(environment.context(), test.args());
    for (std::int64_t r = 0; r < kRows; ++r)
        for (std::int64_t c = 0; c < kHeads * head_dim; ++c) {
            const float gate = test.gate.at(r, c / head_dim * stride + c % head_dim);
            const double expected = oracle::sigmoid_gate(before.values.at(r, c), gate);
            ASSERT_NEAR(test.values.at(r, c), expected,
                        oracle::kSigmoidGateTolerance * std::abs(expected) + std::numeric_limits<float>::min())
                << head_dim << " features, gate " << gate;
        }
    test.values.expect_guards_intact();
}

TEST_P(SigmoidGateTest, MatchesOracle) {
    for (const auto head_dim : kHeadDims)
        for (const std::int64_t stride : {head_dim, 2 * head_dim}) expect_matches_oracle(ops(), head_dim, stride);
}

struct SigmoidGateCase : Case {
    using Case::Case;
    static std::vector<SigmoidGateCase> contract_cases() {
        std::vector<SigmoidGateCase> cases;
        for (const auto head_dim : kHeadDims)
            for (const std::int64_t stride : {head_dim, 2 * head_dim}) cases.emplace_back(9, 2, head_dim, stride);
        return cases;
    }
    std::string name() const {
        return "heads of " + std::to_string(head_dim) + ", gates " + std::to_string(gate_head_stride) + " apart";
    }
    std::int64_t rows() const { return values.rows(); }
    SigmoidGateCase select(const RowList& rows) const {
        SigmoidGateCase result = *this;
        result.values = values.select(rows);
        result.gate = gate.select(rows);
        return result;
    }
    std::size_t scratch_bytes(int) const { return 0; }
    void run(const OpTable& ops, OpContext& context) { ops.sigmoid_gate(context, args()); }
    std::vector<GuardedMatrix*> written() { return {&values}; }
};
NINFER_INSTANTIATE_CONTRACT_SUITE(SigmoidGateCase);

NINFER_INSTANTIATE_OP_TEST(SigmoidGateTest);

}  // namespace
}  // namespace ninfer
