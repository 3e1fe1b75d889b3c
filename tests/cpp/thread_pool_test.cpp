#include "cpp/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace ninfer {
namespace {

class ThreadPoolTest : public testing::TestWithParam<int> {};

TEST_P(ThreadPoolTest, RunsEveryBlockExactlyOnce) {
    ThreadPool pool(GetParam());
    for (const std::int64_t blocks : {0, 1, 2, 3, 17, 1000}) {
        std::vector<std::atomic<int>> runs(static_cast<std::size_t>(blocks));
        for (int repeat = 1; repeat <= 50; ++repeat) {
            pool.parallel_for(blocks, [&](std::int64_t block, int thread) {
                EXPECT_GE(thread, 0);
                EXPECT_LT(thread, pool.thread_count());
                runs[static_cast<std::size_t>(block)].fetch_add(1);
            });
            for (const auto& count : runs) EXPECT_EQ(count.load(), repeat);
        }
    }
}

TEST_P(ThreadPoolTest, PlainWritesOfTasksAreSeenByTheCaller) {
    ThreadPool pool(GetParam());
    std::vector<std::int64_t> values(257);
    for (std::int64_t round = 0; round < 2000; ++round) {
        pool.parallel_for(257,
                          [&](std::int64_t block, int) { values[static_cast<std::size_t>(block)] = block * round; });
        for (std::int64_t block = 0; block < 257; ++block)
            ASSERT_EQ(values[static_cast<std::size_t>(block)], block * round);
    }
}

TEST_P(ThreadPoolTest, TasksFlushDenormals) {
    ThreadPool pool(GetParam());
    volatile float tiny = 1e-30F;
    std::vector<float> products(64, 1.0F);
    pool.parallel_for(64, [&](std::int64_t block, int) { products[static_cast<std::size_t>(block)] = tiny * 1e-10F; });
    for (const float product : products) EXPECT_EQ(product, 0.0F);
    EXPECT_NE(tiny * 1e-10F, 0.0F) << "the caller's floating-point state was not restored";
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace ninfer
