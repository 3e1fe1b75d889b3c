// Runs whose pages lie in different places: cut, demoted, dropped and restored at every border.

#include "tests/cpp/transaction/transaction_fixture.h"

namespace ninfer {
namespace {

using testing_support::KnownHolding;

constexpr std::int64_t kPageBlocks = testing_support::StoresWorld::kPageBlocks;

// Pages 0 and 3 on Device, 1 and 4 on both, 2 and 5 on Host, all in one run.
class MixedRunTest : public testing_support::TransactionTest {
   protected:
    void build_mixed() {
        build(kNoImages);
        const KnownHolding mixed = world().make(6 * 64);
        for (const std::int64_t index : {1, 2, 4, 5}) world().page_to_host(world().page_at(mixed.holding, index));
        for (const std::int64_t index : {2, 5}) world().page_off_device(world().page_at(mixed.holding, index));
        read({mixed});
        ASSERT_EQ(domain_->runs().size(), 1U);
    }
};

TEST_F(MixedRunTest, ARunKnowsHowManyPagesAreWhereForEveryBeginningOfIt) {
    build_mixed();
    EXPECT_EQ(domain_->segments(domain_->runs()[0]).size(), 6U);
    for (std::int32_t pages = 0; pages <= 6; ++pages) {
        outcomes_[0].device_pages = pages;
        const ResourceProjection projection = project();
        const std::int64_t on_device = (pages > 0) + (pages > 1) + (pages > 3) + (pages > 4);
        const std::int64_t copied = (pages <= 0) + (pages <= 3);
        EXPECT_EQ(projection.to_host.operations, copied) << pages;
        EXPECT_EQ(projection.used_at(ResourceStage::kCommitted), (Axes{on_device, 0, 0, (4 + copied) * kPageBlocks}));
        EXPECT_EQ(projector_->placement(0), (HoldingPlacement{6, on_device, 4 + copied}));
    }
    outcomes_[0].device_pages = 2;
    commit({});
}

TEST_F(MixedRunTest, OnlyRedundantHostReplicasAreDropped) {
    build_mixed();
    outcomes_[0].drops_host = true;
    EXPECT_EQ(change_until(project(), ResourceStage::kReleased), (Axes{0, 0, 0, -2 * kPageBlocks}));
    EXPECT_EQ(projector_->placement(0), (HoldingPlacement{6, 4, 2}));
    commit({});
}

TEST_F(MixedRunTest, AReplicaThatIsDroppedOnBothSidesOfAFrontierStaysOnce) {
    build_mixed();
    outcomes_[0].drops_host = true;
    outcomes_[0].device_pages = 4;  // page 1 stays on Device alone, page 4 on Host alone
    const ResourceProjection projection = project();
    EXPECT_EQ(change_until(projection, ResourceStage::kReleased), (Axes{-1, 0, 0, -kPageBlocks}));
    EXPECT_EQ(projector_->placement(0), (HoldingPlacement{6, 3, 3}));
    commit({});
}

TEST_F(MixedRunTest, AShorterFrontierFreesWhatLiesBeyondWhereverItIs) {
    build_mixed();
    for (std::int64_t pages = 6; pages >= 1; --pages) {
        outcomes_[0].frontier = pages * 64 - 10;
        outcomes_[0].device_pages = static_cast<std::int32_t>(pages);
        const std::int64_t on_device = (pages > 0) + (pages > 1) + (pages > 3) + (pages > 4);
        const std::int64_t on_host = (pages > 1) + (pages > 2) + (pages > 4) + (pages > 5);
        EXPECT_EQ(project().used_at(ResourceStage::kReleased), (Axes{on_device, 0, 0, on_host * kPageBlocks}));
    }
    outcomes_[0].frontier = 100;
    outcomes_[0].device_pages = 2;
    const TransactionResult result = commit({});
    EXPECT_EQ(result.holdings[0].frontier, 100);
    EXPECT_NE(result.holdings[0].holding.kv, known_[0].holding.kv);
}

TEST_F(MixedRunTest, OnlyTheMissingPagesOfASourceAreRestored) {
    build_mixed();
    ResourceNeed need = from_source(0, 5 * 64, 6, false);
    EXPECT_EQ(project(need).to_device.operations, 1);
    EXPECT_EQ(change_until(project(need), ResourceStage::kRestoring), (Axes{1, 0, 0, 0}));
    need = from_source(0, 6 * 64, 8, true);
    EXPECT_EQ(project(need).to_device.operations, 2);
    EXPECT_EQ(project(need).kv, KvActivation::kMove);
    EXPECT_EQ(change_until(project(need), ResourceStage::kCommitted), (Axes{2 + 2, 0, 0, 0}));
    outcomes_[0].drops_host = true;
    EXPECT_EQ(change_until(project(need), ResourceStage::kReleased), (Axes{0, 0, 0, -2 * kPageBlocks}));
    EXPECT_EQ(change_until(project(need), ResourceStage::kCommitted), (Axes{2 + 2, 0, 0, -4 * kPageBlocks}));
    commit(need);
}

}  // namespace
}  // namespace ninfer
