#pragma once

// Tokens in pages.

#include <algorithm>
#include <cstdint>

#include "cpp/tensor/paged_kv_view.h"

namespace ninfer {

// Pages that [0, tokens) needs.
constexpr std::int64_t pages_of(std::int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

// Tokens of page `index` that lie below the frontier, 0..64.
constexpr std::int32_t needed_coverage(std::int64_t frontier, std::int64_t index) {
    return static_cast<std::int32_t>(std::clamp<std::int64_t>(frontier - index * kPageTokens, 0, kPageTokens));
}

constexpr bool is_aligned(std::int64_t frontier) { return frontier % kPageTokens == 0; }

}  // namespace ninfer
