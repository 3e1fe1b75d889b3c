#include "cpp/state/device_page_pool.h"

#include <gtest/gtest.h>

#include "cpp/memory/host_memory.h"

namespace ninfer {
namespace {

TEST(DevicePagePoolTest, PromisedPagesAreNotGivenToOthers) {
    HostMemory memory(3 * 64);
    DevicePagePool pool(memory, 64, 3);
    pool.reserve(2);
    EXPECT_EQ(pool.pages_unpromised(), 1);
    const std::int32_t free_page = pool.take().value();
    EXPECT_EQ(pool.take().error().kind, RefusalKind::kNoPages);
    EXPECT_EQ(pool.take().error().wanted, 1);
    EXPECT_EQ(pool.take().error().found, 0);
    const std::int32_t promised = pool.take_reserved();
    EXPECT_NE(promised, free_page);
    EXPECT_EQ(pool.pages_taken(), 2);
    EXPECT_EQ(pool.pages_reserved(), 1);
    pool.check_invariants({promised, free_page});
    EXPECT_EQ(pool.data(promised), memory.data() + promised * 64);
    pool.give_back(promised);
    pool.unreserve(1);
    pool.check_invariants({free_page});
    EXPECT_EQ(pool.pages_unpromised(), 2);
    EXPECT_EQ(pool.take().value(), promised);
}

TEST(DevicePagePoolTest, APoolOfNothingRefuses) {
    HostMemory memory(0);
    DevicePagePool pool(memory, 64, 0);
    EXPECT_FALSE(pool.take().has_value());
    pool.reserve(0);
    pool.check_invariants({});
}

TEST(DevicePagePoolDeathTest, BrokenUseStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    HostMemory memory(2 * 64);
    EXPECT_DEATH(DevicePagePool(memory, 64, 3), "left = 192, right = 128");
    DevicePagePool pool(memory, 64, 2);
    EXPECT_DEATH(pool.reserve(3), "left = 3, right = 2");
    EXPECT_DEATH(pool.take_reserved(), "left = 1, right = 0");
    EXPECT_DEATH(pool.unreserve(1), "left = 1, right = 0");
    EXPECT_DEATH(pool.give_back(2), "left = 2, right = 2");
    EXPECT_DEATH(pool.give_back(0), "left = 2, right = 2");  // all are free
    const std::int32_t page = pool.take().value();
    EXPECT_DEATH(pool.check_invariants({}), "left = 0, right = 1");
    EXPECT_DEATH(pool.check_invariants({page, page}), "two owners");
    pool.give_back(page);
    EXPECT_DEATH(static_cast<void>(pool.data(-1)), "right = -1");
}

}  // namespace
}  // namespace ninfer
