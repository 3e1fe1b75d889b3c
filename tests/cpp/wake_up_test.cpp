#include "cpp/base/wake_up.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <functional>
#include <system_error>
#include <thread>
#include <vector>

namespace ninfer {
namespace {

bool readable(const WakeUp& wake_up, int timeout_ms) {
    pollfd waiting{wake_up.file_descriptor(), POLLIN, 0};
    return ::poll(&waiting, 1, timeout_ms) == 1;
}

int error_of(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::system_error& error) {
        return error.code().value();
    }
    return 0;
}

TEST(WakeUpTest, IsReadableFromASignalToItsAcknowledgement) {
    const WakeUp wake_up;
    EXPECT_FALSE(readable(wake_up, 0));
    EXPECT_FALSE(wake_up.acknowledge());
    for (const int signals : {1, 3}) {
        for (int i = 0; i < signals; ++i) wake_up.signal();
        EXPECT_TRUE(readable(wake_up, 0));
        EXPECT_TRUE(wake_up.acknowledge());
        EXPECT_FALSE(readable(wake_up, 0));
        EXPECT_FALSE(wake_up.acknowledge());
    }
}

TEST(WakeUpTest, AFullCounterIsSignalledAlready) {
    const WakeUp wake_up;
    const std::uint64_t most = UINT64_MAX - 1;
    ASSERT_EQ(::write(wake_up.file_descriptor(), &most, sizeof most), static_cast<ssize_t>(sizeof most));
    wake_up.signal();
    EXPECT_TRUE(readable(wake_up, 0));
    EXPECT_TRUE(wake_up.acknowledge());
    EXPECT_FALSE(wake_up.acknowledge());
}

TEST(WakeUpTest, TwoDoNotWakeEachOther) {
    const WakeUp one;
    const WakeUp two;
    one.signal();
    EXPECT_FALSE(readable(two, 0));
    EXPECT_TRUE(readable(one, 0));
}

TEST(WakeUpTest, ItsDescriptorIsNotInheritedAndEndsWithIt) {
    int descriptor = -1;
    {
        const WakeUp wake_up;
        descriptor = wake_up.file_descriptor();
        EXPECT_NE(::fcntl(descriptor, F_GETFD) & FD_CLOEXEC, 0);
        EXPECT_NE(::fcntl(descriptor, F_GETFL) & O_NONBLOCK, 0);
    }
    EXPECT_EQ(::fcntl(descriptor, F_GETFD), -1);
    EXPECT_EQ(errno, EBADF);
}

#if !defined(__SANITIZE_ADDRESS__)
// The sanitizers need descriptors of their own to look at the exception while it is made.
TEST(WakeUpTest, AMachineWithoutDescriptorsIsATypedError) {
    rlimit before{};
    ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
    const rlimit none{0, before.rlim_max};
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
    const int error = error_of([] { const WakeUp wake_up; });
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    EXPECT_EQ(error, EMFILE);
}
#endif

TEST(WakeUpTest, ADescriptorThatSomebodyElseClosedIsATypedError) {
    const WakeUp wake_up;
    ASSERT_EQ(::close(wake_up.file_descriptor()), 0);
    EXPECT_EQ(error_of([&] { wake_up.signal(); }), EBADF);
    EXPECT_EQ(error_of([&] { wake_up.acknowledge(); }), EBADF);
}

// Each round stores one thing per thread and signals; the waiter acknowledges before it looks. A wake-up that got lost
// would leave it waiting for what is already there.
TEST(WakeUpTest, NoSignalIsLost) {
    constexpr int kThreads = 4;
    constexpr int kSignals = 5000;
    constexpr int kFarTooLongMs = 60'000;
    const WakeUp wake_up;
    std::atomic<int> stored{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([&] {
            for (int k = 0; k < kSignals; ++k) {
                stored.fetch_add(1);
                wake_up.signal();
                if (k % 16 == 0) std::this_thread::yield();
            }
        });
    }
    int seen = 0;
    while (seen < kThreads * kSignals && readable(wake_up, kFarTooLongMs)) {
        EXPECT_TRUE(wake_up.acknowledge());
        seen = stored.load();
    }
    EXPECT_EQ(seen, kThreads * kSignals);
    for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace ninfer
