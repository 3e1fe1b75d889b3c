#pragma once

// One block of the digest chain (docs/formats/prefix_digest.md): the digest in front of it and the records of its tokens
// so far.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/program/token_span.h"

namespace ninfer {

inline constexpr std::int64_t kDigestBlockTokens = 64;

class DigestBlock {
   public:
    // `before`: the digest at the block's first token.
    explicit DigestBlock(const Digest128& before) noexcept;

    // The next tokens of the block, which begin at index `begin` and which the spans cover.
    void add(std::int64_t begin, std::span<const std::int32_t> ids, std::span<const TokenSpan> spans) noexcept;
    // The digest behind the tokens so far, of which there is at least one.
    Digest128 digest() const noexcept;

   private:
    static constexpr std::size_t kTextBytes = 20;
    static constexpr std::size_t kMediaBytes = 24;
    static constexpr std::size_t kMostBytes = sizeof(Digest128) + kDigestBlockTokens * (kTextBytes + kMediaBytes);

    void add_span(const TokenSpan& span, std::int64_t begin, std::span<const std::int32_t> ids) noexcept;

    std::int64_t tokens_ = 0;
    std::size_t size_ = sizeof(Digest128);
    std::array<std::byte, kMostBytes> bytes_;  // [0, size_) is written
};

}  // namespace ninfer
