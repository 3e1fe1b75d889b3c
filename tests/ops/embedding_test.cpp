#include "cpp/ops/embedding.h"

#include "tests/ops/op_fixture.h"
#include "tests/ops/oracle/panel_weight.h"

namespace ninfer {
namespace {

using oracle::PanelWeight;
using testing_support::GuardedMatrix;
using testing_support::OpEnvironment;
using testing_support::OpTest;
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

NINFER_INSTANTIATE_OP_TEST(EmbeddingTest);

}  // namespace
}  // namespace ninfer
