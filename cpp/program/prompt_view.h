#pragma once

// A prompt with everything that identifies it; what it points to outlives the call that takes it.

#include <cstdint>
#include <span>

#include "cpp/program/identity_header.h"
#include "cpp/program/token_span.h"

namespace ninfer {

struct PromptView {
    const IdentityHeader* header = nullptr;
    std::span<const std::int32_t> tokens;
    // Ascending; the first begins at 0. Empty: all is text and positions are indices.
    std::span<const TokenSpan> spans;

    std::span<const TokenSpan> all_spans() const noexcept {
        return spans.empty() ? std::span<const TokenSpan>(&kTextFromStart, 1) : spans;
    }
};

}  // namespace ninfer
