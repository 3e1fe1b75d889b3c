#include "cpp/ops/embedding.h"

#include <memory>

#include "tests/ops/contract_suite.h"
#include "tests/ops/oracle/panel_weight.h"

namespace ninfer {
namespace {

using oracle::PanelWeight;
using testing_support::GuardedMatrix;
using testing_support::OpEnvironment;
using testing_support::OpTest;
using testing_support::RowList;
using testing_support::test_seed;

using EmbeddingTest = OpTest;

// Dequantisation rounds at most once, so the double-precision value rounded to float is the only right answer.
TEST_P(EmbeddingTest, RowsAreExact) {
    OpEnvironment environment(2);
    const std::vector<std::int32_t> ids = {0, 32, 15, 16, 17, 32, 0, 31};
    for (const auto storage : oracle::kStorages)
        for (const std::int64_t in : {1, 2, 31, 32, 33, 64, 96, 200}) {
            const PanelWeight table = oracle::random_weight(storage, 33, in, test_seed());
            for (const std::size_t count : {std::size_t{0}, std::size_t{1}, ids.size()}) {
                GuardedMatrix output(static_cast<std::int64_t>(count), in);
                ops().embedding(environment.context(),
                                {ids.data(), static_cast<std::int64_t>(count), table.view(), output.view()});
                for (std::size_t r = 0; r < count; ++r)
                    for (std::int64_t i = 0; i < in; ++i)
                        ASSERT_EQ(output.at(static_cast<std::int64_t>(r), i),
                                  static_cast<float>(table.dequantised(ids[r], i)))
                            << to_string(storage) << " id " << ids[r] << " input " << i << " of " << in;
                output.expect_guards_intact();
            }
        }
}

TEST_P(EmbeddingTest, IdsOutsideTheTableStopTheProcess) {
    const PanelWeight table = oracle::random_weight(WeightStorage::kQ8, 33, 32, test_seed());
    GuardedMatrix output(1, 32);
    for (const std::int32_t id : {-1, 33}) {
        EXPECT_DEATH(
            {
                OpEnvironment environment(1);
                ops().embedding(environment.context(), {&id, 1, table.view(), output.view()});
            },
            "args.ids");
    }
}

struct EmbeddingCase {
    EmbeddingCase(WeightStorage storage, std::int64_t in)
        : table(std::make_shared<const PanelWeight>(oracle::random_weight(storage, 33, in, test_seed()))),
          ids{0, 32, 15, 16, 17, 32, 0, 31, 8},
          output(std::ssize(ids), in) {}
    static std::vector<EmbeddingCase> contract_cases() {
        std::vector<EmbeddingCase> cases;
        for (const auto storage : oracle::kStorages)
            for (const std::int64_t in : {1, 2, 31, 32, 33, 64, 200}) cases.emplace_back(storage, in);
        return cases;
    }
    std::string name() const {
        return std::string(to_string(table->storage)) + " of " + std::to_string(output.columns());
    }
    std::int64_t rows() const { return output.rows(); }
    EmbeddingCase select(const RowList& rows) const {
        EmbeddingCase result = *this;
        result.ids.clear();
        for (const auto row : rows) result.ids.push_back(ids[static_cast<std::size_t>(row)]);
        result.output = output.select(rows);
        return result;
    }
    std::size_t scratch_bytes(int) const { return 0; }
    void run(const OpTable& ops, OpContext& context) {
        ops.embedding(context, {ids.data(), std::ssize(ids), table->view(), output.view()});
    }
    std::vector<GuardedMatrix*> written() { return {&output}; }

    std::shared_ptr<const PanelWeight> table;
    std::vector<std::int32_t> ids;
    GuardedMatrix output;
};
NINFER_INSTANTIATE_CONTRACT_SUITE(EmbeddingCase);

NINFER_INSTANTIATE_OP_TEST(EmbeddingTest);

}  // namespace
}  // namespace ninfer
