#include "cpp/ops/linear.h"

#include <memory>

#include "tests/ops/contract_suite.h"
#include "tests/ops/oracle/linear_oracle.h"

namespace ninfer {
namespace {

using oracle::PanelWeight;
using testing_support::GuardedMatrix;
using testing_support::NormalSource;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::RowList;
using testing_support::test_seed;

struct Shape {
    std::int64_t rows;
    std::int64_t out;
    std::int64_t in;
};

std::string name_of(const Shape& shape) {
    return std::to_string(shape.rows) + " x " + std::to_string(shape.in) + " -> " + std::to_string(shape.out);
}

// Every boundary of one size with the others fixed, and one large case.
std::vector<Shape> boundary_shapes() {
    std::vector<Shape> shapes;
    for (const std::int64_t rows : {0, 1, 2, 5, 6, 7, 8, 9, 17, 64, 65}) shapes.push_back({rows, 33, 200});
    for (const std::int64_t out : {1, 15, 16, 17, 33, 200}) shapes.push_back({5, out, 96});
    for (const std::int64_t in : {1, 2, 31, 32, 33, 64, 96, 200, 1024}) shapes.push_back({7, 33, in});
    shapes.push_back({65, 200, 1024});
    return shapes;
}

GuardedMatrix random_input(std::int64_t rows, std::int64_t columns) {
    GuardedMatrix input(rows, columns);
    NormalSource normal(test_seed() + 1, 2.0);
    input.fill(normal);
    if (rows > 3)
        for (std::int64_t c = 0; c < columns; ++c) input.at(3, c) = 0.0F;
    return input;
}

std::vector<float> row_of(GuardedMatrix& matrix, std::int64_t row, std::int64_t columns) {
    std::vector<float> result;
    for (std::int64_t c = 0; c < columns; ++c) result.push_back(matrix.at(row, c));
    return result;
}

// One target, with the scratch that the contract states for it.
void run(const OpTable& ops, int threads, MatrixView input, const PanelWeight& weight, MatrixView output) {
    OpEnvironment environment(threads, linear_scratch_bytes(input.rows, input.columns, weight.storage));
    const LinearTarget target{weight.view(), output};
    ops.linear(environment.context(), {input, &target, 1});
}

using LinearTest = OpTest;

void expect_matches_oracle(const OpTable& ops, WeightStorage storage, const Shape& shape) {
    SCOPED_TRACE(std::string(to_string(storage)) + " " + name_of(shape));
    const PanelWeight weight = oracle::random_weight(storage, shape.out, shape.in, test_seed());
    GuardedMatrix input = random_input(shape.rows, shape.in);
    GuardedMatrix output(shape.rows, shape.out);
    run(ops, 2, input.view(), weight, output.view());
    for (std::int64_t r = 0; r < shape.rows; ++r) {
        const std::vector<float> x = row_of(input, r, shape.in);
        for (std::int64_t o = 0; o < shape.out; ++o) {
            const auto expected = oracle::linear(x, weight, o);
            ASSERT_NEAR(output.at(r, o), expected.value, oracle::kLinearTolerance * expected.magnitude)
                << r << ", " << o;
        }
    }
    output.expect_guards_intact();
}

TEST_P(LinearTest, MatchesOracle) {
    for (const auto storage : oracle::kStorages)
        for (const Shape& shape : boundary_shapes()) expect_matches_oracle(ops(), storage, shape);
}

// Exponents over a wide range, so that every fma rounds and some results flush to zero.
TEST_P(LinearTest, SameBitsForWideExponents) {
    std::mt19937_64 engine(test_seed());
    const auto wide = [&] {
        const auto bits = static_cast<std::uint32_t>(engine());
        return oracle::bits_to_float((bits & 0x807FFFFFU) | ((96U + bits % 60U) << 23));
    };
    for (const auto storage : {WeightStorage::kF32, WeightStorage::kBf16}) {
        PanelWeight weight(storage, 33, 300);
        for (float& value : weight.values) value = wide();
        weight.pack();
        GuardedMatrix input(9, 300);
        input.fill(wide);
        GuardedMatrix here(9, 33);
        GuardedMatrix scalar(9, 33);
        run(ops(), 1, input.view(), weight, here.view());
        run(cpu_op_table(InstructionSet::kScalar), 1, input.view(), weight, scalar.view());
        EXPECT_TRUE(here.equal_bits(scalar)) << to_string(storage);
    }
}

// Small integers with an activation scale and weight scales of 1: every sum is exact, so the result is, too. The
// largest quants of either sign meet activations of +-127 in every group.
TEST_P(LinearTest, IntegersAreExact) {
    constexpr std::int64_t kIn = 192;
    std::mt19937_64 engine(test_seed());
    for (const auto storage : oracle::kStorages) {
        PanelWeight weight = oracle::random_weight(storage, 17, kIn, test_seed());
        for (float& value : weight.values) value = static_cast<float>(static_cast<int>(engine() % 255) - 127);
        for (std::int64_t i = 0; i < kIn; ++i) {
            weight.quants[weight.element(0, i)] = storage == WeightStorage::kQ8 ? -128 : 15;
            weight.quants[weight.element(1, i)] = storage == WeightStorage::kQ8 ? 127 : 0;
        }
        for (auto& scale : weight.scales) scale = 0x3C00;
        for (auto& minimum : weight.minima) minimum = storage == WeightStorage::kQ4 ? 0xC800 : 0;
        weight.packed = HostBuffer(weight.view().total_bytes());
        weight.pack();
        GuardedMatrix input(7, kIn);
        input.fill([&] { return static_cast<int>(engine() % 255) - 127; });
        for (std::int64_t i = 0; i < kIn; ++i) {
            input.at(0, i) = 127.0F;
            input.at(1, i) = -127.0F;
        }
        for (std::int64_t r = 2; r < 7; ++r)
            for (std::int64_t i = 0; i < kIn; i += 32) input.at(r, i) = 127.0F;
        GuardedMatrix output(7, 17);
        run(ops(), 1, input.view(), weight, output.view());
        for (std::int64_t r = 0; r < 7; ++r)
            for (std::int64_t o = 0; o < 17; ++o)
                ASSERT_EQ(output.at(r, o), oracle::linear(row_of(input, r, kIn), weight, o).value)
                    << to_string(storage) << " " << r << ", " << o;
    }
}

// Inputs too small for a normal activation scale count as zero.
TEST_P(LinearTest, DenormalInputsGiveZero) {
    for (const auto storage : oracle::kStorages) {
        const PanelWeight weight = oracle::random_weight(storage, 20, 40, test_seed());
        GuardedMatrix input(2, 40);
        input.fill([] { return 1e-40; });
        GuardedMatrix output(2, 20);
        run(ops(), 1, input.view(), weight, output.view());
        for (std::int64_t o = 0; o < 20; ++o) EXPECT_EQ(output.at(1, o), 0.0F) << to_string(storage);
    }
}

// Targets of all storages and different widths in one call equal a call each, and scratch stays within its bound.
TEST_P(LinearTest, TargetsShareOneInput) {
    constexpr std::int64_t kRows = 19;
    constexpr std::int64_t kIn = 77;
    GuardedMatrix input = random_input(kRows, kIn);
    OpEnvironment exact(2, linear_scratch_bytes(kRows, kIn, WeightStorage::kQ8));
    std::vector<PanelWeight> weights;
    std::vector<GuardedMatrix> together;
    std::vector<LinearTarget> targets;
    for (const auto storage : oracle::kStorages)
        for (const std::int64_t out : {1, 40}) {
            weights.push_back(oracle::random_weight(storage, out, kIn, test_seed()));
            together.emplace_back(kRows, out);
        }
    for (std::size_t t = 0; t < weights.size(); ++t) targets.push_back({weights[t].view(), together[t].view()});
    ops().linear(exact.context(), {input.view(), targets.data(), static_cast<std::int64_t>(targets.size())});
    EXPECT_EQ(exact.context().scratch.used_bytes(), 0U);
    for (std::size_t t = 0; t < weights.size(); ++t) {
        GuardedMatrix alone(kRows, weights[t].out);
        run(ops(), 1, input.view(), weights[t], alone.view());
        EXPECT_TRUE(alone.equal_bits(together[t])) << t;
    }
}

// bf16 was checked on Zen 5: vdpbf16ps has the bits of two fma (N-4 of docs/design/numerics.md).
struct LinearCase {
    LinearCase(WeightStorage storage, const Shape& shape)
        : weight(std::make_shared<const PanelWeight>(oracle::random_weight(storage, shape.out, shape.in, test_seed()))),
          input(random_input(shape.rows, shape.in)),
          output(shape.rows, shape.out) {}
    static std::vector<LinearCase> contract_cases() {
        std::vector<LinearCase> cases;
        for (const auto storage : oracle::kStorages)
            for (const Shape& shape : boundary_shapes()) cases.emplace_back(storage, shape);
        return cases;
    }
    std::string name() const {
        return std::string(to_string(weight->storage)) + " " + name_of({rows(), weight->out, weight->in});
    }
    std::int64_t rows() const { return input.rows(); }
    LinearCase select(const RowList& rows) const {
        LinearCase result = *this;
        result.input = input.select(rows);
        result.output = output.select(rows);
        return result;
    }
    std::size_t scratch_bytes(int) const { return linear_scratch_bytes(rows(), weight->in, weight->storage); }
    void run(const OpTable& ops, OpContext& context) {
        const LinearTarget target{weight->view(), output.view()};
        ops.linear(context, {input.view(), &target, 1});
    }
    std::vector<GuardedMatrix*> written() { return {&output}; }

    std::shared_ptr<const PanelWeight> weight;
    GuardedMatrix input;
    GuardedMatrix output;
};
NINFER_INSTANTIATE_CONTRACT_SUITE(LinearCase);

NINFER_INSTANTIATE_OP_TEST(LinearTest);

}  // namespace
}  // namespace ninfer
