// Reads memory with several threads and prints the best rate in GB/s: the limit that decoding is compared with.
// Usage: memory_read THREADS

#include <algorithm>
#include <array>
#include <barrier>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kWordsPerThread = std::size_t{32} << 20;  // 256 MiB: far beyond every cache
constexpr std::size_t kRounds = 8;

using Clock = std::chrono::steady_clock;

std::uint64_t sum(const std::vector<std::uint64_t>& words) {
    std::uint64_t sums[16] = {};
    for (std::size_t i = 0; i < words.size(); i += 16)
        for (std::size_t j = 0; j < 16; ++j) sums[j] += words[i + j];
    std::uint64_t total = 0;
    for (const std::uint64_t one : sums) total += one;
    return total;
}

}  // namespace

int main(int argc, char** argv) {
    const int threads = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
    const auto count = static_cast<std::size_t>(threads);
    std::barrier gate(threads);
    std::vector<std::uint64_t> totals(count);
    std::vector<std::array<Clock::time_point, kRounds>> starts(count), ends(count);
    std::vector<std::thread> pool;
    for (std::size_t t = 0; t < count; ++t)
        pool.emplace_back([&, t] {
            const std::vector<std::uint64_t> words(kWordsPerThread, t + 1);
            for (std::size_t round = 0; round < kRounds; ++round) {
                gate.arrive_and_wait();
                asm volatile("" ::: "memory");  // or the compiler could keep the sum of the round before
                starts[t][round] = Clock::now();
                totals[t] += sum(words);
                ends[t][round] = Clock::now();
            }
        });
    for (std::thread& thread : pool) thread.join();
    double best = 1e9;
    for (std::size_t round = 0; round < kRounds; ++round) {
        Clock::time_point first = starts[0][round], last = ends[0][round];
        for (std::size_t t = 1; t < count; ++t) {
            first = std::min(first, starts[t][round]);
            last = std::max(last, ends[t][round]);
        }
        best = std::min(best, std::chrono::duration<double>(last - first).count());
    }
    for (std::size_t t = 0; t < count; ++t)
        if (totals[t] != kRounds * kWordsPerThread * (t + 1)) return 1;
    std::printf("%.3f\n", threads * static_cast<double>(kWordsPerThread) * 8 / best / 1e9);
    return 0;
}
