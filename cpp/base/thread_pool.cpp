#include "cpp/base/thread_pool.h"

#include <immintrin.h>

#include <chrono>
#include <exception>
#include <string>

#include "cpp/base/assert.h"
#include "cpp/base/error.h"
#include "cpp/base/fp_environment.h"

namespace ninfer {

namespace {

constexpr auto kSpinTime = std::chrono::microseconds(50);
constexpr int kSpinsPerClockRead = 64;

// Spins for at most kSpinTime until ready() holds, then gives up with false.
template <typename Ready>
bool spin_until(Ready ready) {
    const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
    do {
        for (int i = 0; i < kSpinsPerClockRead; ++i) {
            if (ready()) return true;
            _mm_pause();
        }
    } while (std::chrono::steady_clock::now() < deadline);
    return ready();
}

}  // namespace

ThreadPool::ThreadPool(int thread_count)
    : ThreadPool(thread_count, [](std::function<void()> body) { return std::thread(std::move(body)); }) {}

ThreadPool::ThreadPool(int thread_count, ThreadStarter start) : thread_count_(thread_count) {
    NINFER_ASSERT_LE(1, thread_count);
    try {
        workers_.reserve(static_cast<std::size_t>(thread_count - 1));
        for (int thread = 1; thread < thread_count; ++thread)
            workers_.push_back(start([this, thread] { worker_loop(thread); }));
    } catch (const std::exception& error) {
        const std::string running = std::to_string(workers_.size() + 1);
        stop_workers();
        throw OutOfMemoryError("only " + running + " of " + std::to_string(thread_count) +
                               " compute threads could be started: " + error.what());
    }
}

ThreadPool::~ThreadPool() { stop_workers(); }

void ThreadPool::stop_workers() {
    NINFER_ASSERT(!running_.load(std::memory_order_relaxed), "a thread pool ends during its own parallel_for");
    stopping_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    for (auto& worker : workers_) worker.join();
}

void ThreadPool::parallel_for(std::int64_t block_count, Task task) {
    NINFER_ASSERT_LE(0, block_count);
    NINFER_ASSERT(!running_.exchange(true, std::memory_order_acquire),
                  "parallel_for from a second thread or inside a task");
    const FlushDenormals compute_state;
    if (workers_.empty() || block_count <= 1)
        for (std::int64_t block = 0; block < block_count; ++block) task(block, 0);
    else
        run_on_all_threads(block_count, task);
    running_.store(false, std::memory_order_release);
}

void ThreadPool::run_on_all_threads(std::int64_t block_count, const Task& task) {
    task_ = &task;
    block_count_ = block_count;
    next_block_.store(0, std::memory_order_relaxed);
    finished_.store(0, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    run_blocks(0);
    const auto worker_count = static_cast<std::uint32_t>(workers_.size());
    const auto all_finished = [&] { return finished_.load(std::memory_order_acquire) == worker_count; };
    while (!spin_until(all_finished)) {
        const auto seen = finished_.load(std::memory_order_acquire);
        if (seen != worker_count) finished_.wait(seen, std::memory_order_acquire);
    }
    task_ = nullptr;
}

void ThreadPool::run_blocks(int thread) {
    for (;;) {
        const std::int64_t block = next_block_.fetch_add(1, std::memory_order_relaxed);
        if (block >= block_count_) return;
        (*task_)(block, thread);
    }
}

std::uint32_t ThreadPool::wait_for_epoch(std::uint32_t seen) {
    const auto moved = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(moved)) epoch_.wait(seen, std::memory_order_acquire);
    return epoch_.load(std::memory_order_acquire);
}

void ThreadPool::worker_loop(int thread) {
    const FlushDenormals compute_state;
    std::uint32_t seen = 0;
    for (;;) {
        seen = wait_for_epoch(seen);
        if (stopping_.load(std::memory_order_relaxed)) return;
        run_blocks(thread);
        if (finished_.fetch_add(1, std::memory_order_release) + 1 == static_cast<std::uint32_t>(workers_.size()))
            finished_.notify_one();
    }
}

}  // namespace ninfer
