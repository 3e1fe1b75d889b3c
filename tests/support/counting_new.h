#pragma once

// Counts every operator new of the test program, and lets one fail on demand. It replaces the global operators, so exactly one source of a program
// includes it.

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace ninfer::testing_support {

inline std::atomic<std::int64_t> allocation_count{0};

inline std::int64_t allocations() { return allocation_count.load(); }

// Of the calling thread: as many allocations succeed, then one throws std::bad_alloc and this is unlimited again.
inline constexpr std::int64_t kUnlimited = -1;
inline thread_local std::int64_t allocations_left = kUnlimited;

inline void* counted_memory(std::size_t bytes) {
    allocation_count.fetch_add(1, std::memory_order_relaxed);
    if (allocations_left >= 0 && allocations_left-- == 0) throw std::bad_alloc();
    void* memory = std::malloc(bytes == 0 ? 1 : bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace ninfer::testing_support

// Not inlined: GCC would see malloc's memory freed behind operator new, and warn.
[[gnu::noinline]] void* operator new(std::size_t bytes) { return ninfer::testing_support::counted_memory(bytes); }
[[gnu::noinline]] void* operator new[](std::size_t bytes) { return ninfer::testing_support::counted_memory(bytes); }
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
