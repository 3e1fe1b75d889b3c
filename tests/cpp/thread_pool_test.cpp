#include "cpp/base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "cpp/base/error.h"

namespace ninfer {
namespace {

using std::chrono::milliseconds;

// Far beyond the 50 µs that threads spin: all of them sleep.
constexpr auto kLongPause = milliseconds(2);

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

TEST_P(ThreadPoolTest, SleepingWorkersWakeUp) {
    ThreadPool pool(GetParam());
    for (int repeat = 0; repeat < 30; ++repeat) {
        std::this_thread::sleep_for(kLongPause);
        std::atomic<int> runs{0};
        pool.parallel_for(17, [&](std::int64_t, int) { runs.fetch_add(1); });
        EXPECT_EQ(runs.load(), 17);
    }
}

// Thread 0 waits until a worker holds a block that outlasts its spinning, so it sleeps until the worker is done.
TEST_P(ThreadPoolTest, SleepingCallerWakesUp) {
    ThreadPool pool(GetParam());
    if (pool.thread_count() == 1) return;
    for (int repeat = 0; repeat < 10; ++repeat) {
        std::atomic<bool> worker_has_block{false};
        bool ended = false;
        pool.parallel_for(2 * pool.thread_count(), [&](std::int64_t, int thread) {
            while (thread == 0 && !worker_has_block.load()) std::this_thread::yield();
            if (thread == 0 || worker_has_block.exchange(true)) return;
            std::this_thread::sleep_for(kLongPause);
            ended = true;
        });
        EXPECT_TRUE(ended);
    }
}

TEST_P(ThreadPoolTest, SleepingPoolsEnd) {
    for (const std::int64_t blocks : {0, 9}) {
        ThreadPool pool(GetParam());
        pool.parallel_for(blocks, [](std::int64_t, int) {});
        std::this_thread::sleep_for(kLongPause);
    }
}

TEST_P(ThreadPoolTest, ManyShortLives) {
    for (int life = 0; life < 200; ++life) {
        ThreadPool pool(GetParam());
        if (life % 2 == 0) continue;
        std::atomic<int> runs{0};
        pool.parallel_for(life, [&](std::int64_t, int) { runs.fetch_add(1); });
        EXPECT_EQ(runs.load(), life);
    }
}

// A starter of which the given start fails, counting the workers that have started and ended.
struct FailingStarter {
    static std::thread start(std::function<void()> body) {
        if (started == failing_start) throw std::system_error(EAGAIN, std::generic_category());
        ++started;
        return std::thread([body = std::move(body)] {
            body();
            ended.fetch_add(1);
        });
    }
    static inline int failing_start = 0;
    static inline int started = 0;
    static inline std::atomic<int> ended{0};
};

TEST(ThreadPoolStartTest, AFailedStartEndsTheOthersAndSaysHowManyRan) {
    for (const int failing_start : {0, 1, 4}) {
        FailingStarter::failing_start = failing_start;
        FailingStarter::started = 0;
        FailingStarter::ended = 0;
        try {
            const ThreadPool pool(6, FailingStarter::start);
            FAIL() << "a pool without all of its threads";
        } catch (const OutOfMemoryError& error) {
            const std::string expected = "only " + std::to_string(failing_start + 1) + " of 6 compute threads";
            EXPECT_NE(std::string(error.what()).find(expected), std::string::npos) << error.what();
        }
        EXPECT_EQ(FailingStarter::started, failing_start);
        EXPECT_EQ(FailingStarter::ended.load(), failing_start);
    }
}

constexpr const char* kSecondCall = "parallel_for from a second thread or inside a task";

class ThreadPoolDeathTest : public testing::TestWithParam<int> {
   protected:
    void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_P(ThreadPoolDeathTest, ACallInsideATaskStopsTheProcess) {
    EXPECT_DEATH(
        {
            ThreadPool pool(GetParam());
            pool.parallel_for(1, [&](std::int64_t, int) { pool.parallel_for(1, [](std::int64_t, int) {}); });
        },
        kSecondCall);
}

TEST_P(ThreadPoolDeathTest, ACallFromASecondThreadStopsTheProcess) {
    EXPECT_DEATH(
        {
            ThreadPool pool(GetParam());
            pool.parallel_for(1, [&](std::int64_t, int) {
                std::thread([&] { pool.parallel_for(1, [](std::int64_t, int) {}); }).join();
            });
        },
        kSecondCall);
}

INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolDeathTest, testing::Values(1, 3));
INSTANTIATE_TEST_SUITE_P(Threads, ThreadPoolTest, testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace ninfer
