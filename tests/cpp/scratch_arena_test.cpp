#include "cpp/memory/scratch_arena.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace ninfer {
namespace {

TEST(ScratchArenaTest, GivesAlignedMemoryUntilItsScopeEnds) {
    ScratchArena arena(1024);
    const ScratchArena::Scope outer(arena);
    auto* const first = arena.take<float>(3);
    first[2] = 1.0F;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(first) % 64, 0U);
    EXPECT_EQ(arena.used_bytes(), 64U);
    std::byte* inner_memory = nullptr;
    {
        const ScratchArena::Scope inner(arena);
        inner_memory = arena.take<std::byte>(65);
        EXPECT_EQ(reinterpret_cast<std::byte*>(first) + 64, inner_memory);
        EXPECT_EQ(arena.used_bytes(), 192U);
    }
    EXPECT_EQ(arena.used_bytes(), 64U);
    EXPECT_EQ(arena.peak_bytes(), 192U);
    EXPECT_EQ(arena.take<std::byte>(960), inner_memory);
    EXPECT_EQ(arena.used_bytes(), arena.capacity_bytes());
    EXPECT_NE(arena.take<float>(0), nullptr);
}

TEST(ScratchArenaDeathTest, TakingMoreThanItHoldsStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    ScratchArena empty(0);
    EXPECT_DEATH(empty.take<std::byte>(1), "left = 1, right = 0");
    ScratchArena arena(256);
    arena.take<std::byte>(193);
    EXPECT_DEATH(arena.take<std::byte>(1), "left = 1, right = 0");
    EXPECT_DEATH(arena.take<float>(-1), "left = 0, right = -1");
    // Counts whose bytes do not fit 64 bits must not wrap around to a small number.
    EXPECT_DEATH(arena.take<double>(std::int64_t{1} << 62), "assertion failed");
    EXPECT_DEATH(arena.take<std::byte>(INT64_MAX), "assertion failed");
}

}  // namespace
}  // namespace ninfer
