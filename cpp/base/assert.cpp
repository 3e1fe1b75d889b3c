#include "cpp/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace ninfer {

void assertion_failed(const char* file, int line, const char* expression, const char* detail) noexcept {
    std::fprintf(stderr, "ninfer: %s:%d: assertion failed: %s: %s\n", file, line, expression, detail);
    std::fflush(stderr);
    std::abort();
}

void comparison_failed(const char* file, int line, const char* expression, std::int64_t left,
                       std::int64_t right) noexcept {
    std::fprintf(stderr, "ninfer: %s:%d: assertion failed: %s: left = %lld, right = %lld\n", file, line, expression,
                 static_cast<long long>(left), static_cast<long long>(right));
    std::fflush(stderr);
    std::abort();
}

}  // namespace ninfer
