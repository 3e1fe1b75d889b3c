#pragma once

// A persistent pool whose caller is compute thread 0: a core that only waits for the others would be a core lost.
//
// One parallel_for at a time (asserted): blocks 0..count-1 are claimed atomically by all threads, the call returns when
// every block has run. Between calls a worker spins at most 50 µs, then sleeps on a futex. No call allocates.

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

#include "cpp/base/function_ref.h"

namespace ninfer {

class ThreadPool {
   public:
    // A task gets the block's index and the index of the thread it runs on, 0 .. thread_count-1.
    using Task = FunctionRef<void(std::int64_t block, int thread)>;

    // Starts one worker that runs `body`; throws std::system_error where the machine has no thread left.
    using ThreadStarter = std::thread (*)(std::function<void()> body);

    // Throws OutOfMemoryError when a worker cannot be started; those already started have then ended.
    explicit ThreadPool(int thread_count);
    // The same with another starter, by which tests let a start fail.
    ThreadPool(int thread_count, ThreadStarter start);
    ~ThreadPool();
    ThreadPool(const ThreadPool&) = delete;
    ThreadPool& operator=(const ThreadPool&) = delete;

    int thread_count() const noexcept { return thread_count_; }

    // Runs task(block, thread) for every block. Tasks must not throw and must not call parallel_for themselves; a
    // second thread must not call it at the same time.
    void parallel_for(std::int64_t block_count, Task task);

   private:
    // Lifecycle of one parallel_for: 1. the caller writes task_ and block_count_ and resets next_block_; 2. it moves
    // epoch_ (release), which wakes the workers; 3. all claim blocks; 4. each worker that has found no more blocks adds
    // itself to finished_; 5. the caller returns once finished_ equals the number of workers, so no worker can touch
    // the next call's task with the old one's index.
    void worker_loop(int thread);
    void run_blocks(int thread);
    std::uint32_t wait_for_epoch(std::uint32_t seen);
    void run_on_all_threads(std::int64_t block_count, const Task& task);
    void stop_workers();

    int thread_count_;
    std::atomic<bool> running_{false};
    const Task* task_ = nullptr;
    std::int64_t block_count_ = 0;
    alignas(64) std::atomic<std::int64_t> next_block_{0};
    alignas(64) std::atomic<std::uint32_t> epoch_{0};
    alignas(64) std::atomic<std::uint32_t> finished_{0};
    std::atomic<bool> stopping_{false};
    std::vector<std::thread> workers_;
};

}  // namespace ninfer
