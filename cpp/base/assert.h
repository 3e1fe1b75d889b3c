#pragma once

// NINFER_ASSERT and friends are always on: a broken invariant is our bug, and the process stops with the values that
// disagree before it can answer wrongly. The failing path lives in one cold, never-inlined function.

#include <cstdint>

namespace ninfer {

[[noreturn]] void assertion_failed(const char* file, int line, const char* expression, const char* detail) noexcept;
[[noreturn]] void comparison_failed(const char* file, int line, const char* expression, std::int64_t left,
                                    std::int64_t right) noexcept;

}  // namespace ninfer

#define NINFER_ASSERT(condition, detail)                                        \
    do {                                                                        \
        if (!(condition)) [[unlikely]]                                          \
            ::ninfer::assertion_failed(__FILE__, __LINE__, #condition, detail); \
    } while (false)

#define NINFER_ASSERT_COMPARE(left, operation, right)                                                     \
    do {                                                                                                  \
        const auto left_value_ = static_cast<std::int64_t>(left);                                         \
        const auto right_value_ = static_cast<std::int64_t>(right);                                       \
        if (!(left_value_ operation right_value_)) [[unlikely]]                                           \
            ::ninfer::comparison_failed(__FILE__, __LINE__, #left " " #operation " " #right, left_value_, \
                                        right_value_);                                                    \
    } while (false)

#define NINFER_ASSERT_EQ(left, right) NINFER_ASSERT_COMPARE(left, ==, right)
#define NINFER_ASSERT_LE(left, right) NINFER_ASSERT_COMPARE(left, <=, right)
#define NINFER_ASSERT_LT(left, right) NINFER_ASSERT_COMPARE(left, <, right)
