#include "cpp/memory/host_copy_engine.h"

#include "tests/contract/copy_ending_contract.h"
#include "tests/contract/copy_engine_contract.h"

namespace ninfer::testing_support {

struct HostCopyEngineMaker {
    static constexpr bool kMovesInPoll = true;
    std::unique_ptr<CopyEngine> make() { return std::make_unique<HostCopyEngine>(); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Host, CopyEngineContract, HostCopyEngineMaker);
INSTANTIATE_TYPED_TEST_SUITE_P(Host, CopyEndingContract, HostCopyEngineMaker);

// The processor's own promises: the limit is exact, the order is that of submission.
TEST(HostCopyEngineTest, APollMovesExactlyItsLimitInOrder) {
    std::vector<std::byte> source(100, std::byte{1});
    std::vector<std::byte> destination(200);
    HostCopyEngine engine;
    const std::vector<CopySegment> first = {{destination.data(), source.data(), 60},
                                            {destination.data() + 60, source.data(), 40}};
    const std::vector<CopySegment> second = {{destination.data() + 100, source.data(), 100}};
    const CopyTicket a = engine.submit(first);
    const CopyTicket b = engine.submit(second);
    const auto moved = [&] { return std::count(destination.begin(), destination.end(), std::byte{1}); };
    engine.poll(0);
    EXPECT_EQ(moved(), 0);
    engine.poll(70);  // splits the second segment
    EXPECT_EQ(moved(), 70);
    EXPECT_EQ(std::count(destination.begin(), destination.begin() + 70, std::byte{1}), 70);
    EXPECT_EQ(engine.status(a), CopyStatus::kPending);
    engine.poll(50);  // ends one copy and begins the next
    EXPECT_EQ(moved(), 120);
    EXPECT_EQ(engine.status(a), CopyStatus::kDone);
    EXPECT_EQ(engine.status(b), CopyStatus::kPending);
    engine.forget(a);
    engine.poll(80);
    EXPECT_EQ(engine.status(b), CopyStatus::kDone);
    EXPECT_EQ(moved(), 200);
    engine.forget(b);
}

TEST(HostCopyEngineTest, ACancelledCopyMovesNothingMore) {
    const std::vector<std::byte> source(100, std::byte{1});
    std::vector<std::byte> destination(200);
    HostCopyEngine engine;
    const CopyTicket first = engine.submit(std::vector<CopySegment>{{destination.data(), source.data(), 100}});
    const CopyTicket second = engine.submit(std::vector<CopySegment>{{destination.data() + 100, source.data(), 100}});
    engine.poll(30);
    engine.cancel(first);
    EXPECT_EQ(engine.status(first), CopyStatus::kFailed);
    engine.forget(first);
    engine.poll(100);  // all of it is the second one's
    EXPECT_EQ(std::count(destination.begin(), destination.end(), std::byte{1}), 130);
    EXPECT_EQ(engine.status(second), CopyStatus::kDone);
    engine.forget(second);
}

}  // namespace ninfer::testing_support
