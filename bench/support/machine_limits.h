#pragma once

// What this machine can do at most, measured in the same run as what is compared with it.

#include <immintrin.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpp/base/cpu_features.h"
#include "cpp/base/thread_pool.h"
#include "cpp/memory/host_buffer.h"

namespace ninfer::bench {

// With one thread, the time that the thread computed, which other programs on the machine disturb least; with several,
// the time that passed, because threads wait for each other.
inline double seconds_now(const ThreadPool& pool) {
    timespec now{};
    clock_gettime(pool.thread_count() == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Shortest of `repeats` runs: a disturbance can only make a run longer.
template <typename Work>
double best_seconds(const ThreadPool& pool, int repeats, Work&& work) {
    double best = 1e30;
    for (int i = 0; i < repeats; ++i) {
        const double begin = seconds_now(pool);
        work();
        best = std::min(best, seconds_now(pool) - begin);
    }
    return best;
}

// The middle one of `repeats` runs, each on what `prepare` makes untimed before it.
template <typename Prepare, typename Work>
double median_seconds(const ThreadPool& pool, int repeats, Prepare&& prepare, Work&& work) {
    std::vector<double> seconds;
    for (int i = 0; i < repeats; ++i) {
        auto prepared = prepare();
        const double begin = seconds_now(pool);
        work(std::move(prepared));
        seconds.push_back(seconds_now(pool) - begin);
    }
    std::nth_element(seconds.begin(), seconds.begin() + repeats / 2, seconds.end());
    return seconds[static_cast<std::size_t>(repeats / 2)];
}

inline constexpr std::int64_t kReadBlock = 64 << 10;

// All threads together read `bytes` from `begin` in whole blocks; a remainder is left out.
inline void read_once(ThreadPool& pool, const std::byte* begin, std::int64_t bytes) {
    std::atomic<int> sink{0};
    pool.parallel_for(bytes / kReadBlock, [&](std::int64_t block, int) {
        const auto* const p = reinterpret_cast<const __m128i*>(begin + block * kReadBlock);
        __m128i sums[8] = {};
        for (std::int64_t i = 0; i < kReadBlock / 16; i += 8)
            for (int j = 0; j < 8; ++j) sums[j] = _mm_xor_si128(sums[j], _mm_load_si128(p + i + j));
        for (int j = 1; j < 8; ++j) sums[0] = _mm_xor_si128(sums[0], sums[j]);
        sink.fetch_add(_mm_cvtsi128_si32(sums[0]), std::memory_order_relaxed);
    });
}

// Bytes per second that all threads together read from memory: the fastest 16 MiB of 256 MiB, read several times in
// turn, so that no cache helps.
inline double read_bandwidth(ThreadPool& pool) {
    constexpr std::int64_t kRegionBytes = std::int64_t{16} << 20;
    constexpr std::int64_t kRegions = 16;
    HostBuffer buffer(static_cast<std::size_t>(kRegionBytes * kRegions));
    std::fill_n(buffer.data(), buffer.size(), std::byte{1});
    std::int64_t region = 0;
    const double seconds = best_seconds(
        pool, 8 * kRegions, [&] { read_once(pool, buffer.data() + region++ % kRegions * kRegionBytes, kRegionBytes); });
    return static_cast<double>(kRegionBytes) / seconds;
}

// Seconds in which all threads together read `bytes` that they have just read: from the cache, as far as it holds them.
inline double cached_read_seconds(ThreadPool& pool, std::int64_t bytes) {
    HostBuffer buffer(static_cast<std::size_t>(bytes));
    std::fill_n(buffer.data(), buffer.size(), std::byte{1});
    return best_seconds(pool, 50, [&] { read_once(pool, buffer.data(), bytes); });
}

inline constexpr int kPeakRounds = 100'000;

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vnni,avx512bf16,avx2,fma")
// Multiply-adds of one thread: 12 independent chains of the widest instruction, in registers.
inline void avx512_int8_peak() {
    __m512i acc[12] = {};
    const __m512i ones = _mm512_set1_epi8(1);
    for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
        for (auto& a : acc) a = _mm512_dpbusd_epi32(a, ones, ones);
        for (auto& a : acc) asm volatile("" : "+v"(a));
    }
}
inline void avx512_bf16_peak() {
    __m512 acc[12] = {};
    const auto ones = reinterpret_cast<__m512bh>(_mm512_set1_epi16(0x3F80));
    for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
        for (auto& a : acc) a = _mm512_dpbf16_ps(a, ones, ones);
        for (auto& a : acc) asm volatile("" : "+v"(a));
    }
}
inline void avx512_f32_peak() {
    __m512 acc[12] = {};
    const __m512 ones = _mm512_set1_ps(1.0F);
    for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
        for (auto& a : acc) a = _mm512_fmadd_ps(ones, ones, a);
        for (auto& a : acc) asm volatile("" : "+v"(a));
    }
}
inline void avx2_int8_peak() {
    __m256i acc[12] = {};
    const __m256i ones = _mm256_set1_epi16(1);
    for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
        for (auto& a : acc) {
            __m256i pairs = _mm256_maddubs_epi16(a, ones);
            asm volatile("" : "+x"(pairs));
            a = _mm256_add_epi32(a, _mm256_madd_epi16(pairs, ones));
        }
        for (auto& a : acc) asm volatile("" : "+x"(a));
    }
}
inline void avx2_f32_peak() {
    __m256 acc[12] = {};
    const __m256 ones = _mm256_set1_ps(1.0F);
    for (int i = 0; i < kPeakRounds; ++i) {
#pragma GCC unroll 12
        for (auto& a : acc) a = _mm256_fmadd_ps(ones, ones, a);
        for (auto& a : acc) asm volatile("" : "+x"(a));
    }
}
#pragma GCC pop_options

// Operations per second of all threads (a multiply-add is two), for int8, bfloat16 and f32.
struct ComputePeak {
    double int8 = 0.0;
    double bf16 = 0.0;
    double f32 = 0.0;
};

// Zeros for the scalar variant, whose speed is not compared with a limit.
inline ComputePeak compute_peak(ThreadPool& pool, InstructionSet isa) {
    const auto operations_per_second = [&](void (*work)(), int operations_per_instruction) {
        const double seconds = best_seconds(
            pool, 200, [&] { pool.parallel_for(pool.thread_count(), [&](std::int64_t, int) { work(); }); });
        return 12.0 * kPeakRounds * operations_per_instruction * pool.thread_count() / seconds;
    };
    if (isa == InstructionSet::kScalar) return {};
    if (isa == InstructionSet::kAvx2) {
        const double f32 = operations_per_second(avx2_f32_peak, 16);
        return {operations_per_second(avx2_int8_peak, 64), f32, f32};
    }
    return {operations_per_second(avx512_int8_peak, 128), operations_per_second(avx512_bf16_peak, 64),
            operations_per_second(avx512_f32_peak, 32)};
}

}  // namespace ninfer::bench
