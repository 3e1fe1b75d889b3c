#include "cpp/program/digest_block.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "cpp/base/assert.h"

namespace ninfer {

static_assert(std::endian::native == std::endian::little, "records are written as they lie in memory");

DigestBlock::DigestBlock(const Digest128& before) noexcept { std::memcpy(bytes_.data(), &before, sizeof(before)); }

void DigestBlock::add(std::int64_t begin, std::span<const std::int32_t> ids,
                      std::span<const TokenSpan> spans) noexcept {
    if (ids.empty()) return;
    tokens_ += std::ssize(ids);
    NINFER_ASSERT_LE(tokens_, kDigestBlockTokens);
    const std::int64_t end = begin + std::ssize(ids);
    std::size_t index = find_span(spans, begin);
    for (std::int64_t from = begin; from < end; ++index) {
        const std::int64_t to = index + 1 < spans.size() ? std::min(spans[index + 1].begin, end) : end;
        add_span(spans[index], from,
                 ids.subspan(static_cast<std::size_t>(from - begin), static_cast<std::size_t>(to - from)));
        from = to;
    }
}

void DigestBlock::add_span(const TokenSpan& span, std::int64_t begin, std::span<const std::int32_t> ids) noexcept {
    TokenFacts facts = span.at(begin);
    std::byte* to = bytes_.data() + size_;
    for (const std::int32_t id : ids) {
        const std::array<std::int32_t, 5> text = {id, facts.type, facts.positions[0], facts.positions[1],
                                                  facts.positions[2]};
        static_assert(sizeof(text) == kTextBytes);
        std::memcpy(to, text.data(), kTextBytes);
        to += kTextBytes;
        if (facts.media) {
            static_assert(sizeof(Digest128) + sizeof(std::int64_t) == kMediaBytes);
            std::memcpy(to, &facts.media->digest, sizeof(Digest128));
            std::memcpy(to + sizeof(Digest128), &facts.media->offset, sizeof(std::int64_t));
            to += kMediaBytes;
            ++facts.media->offset;
        }
        // Unsigned, so that a position beyond the largest one wraps as in TokenSpan::at.
        for (std::size_t axis = 0; axis < kPositionAxes; ++axis)
            facts.positions[axis] = static_cast<std::int32_t>(static_cast<std::uint32_t>(facts.positions[axis]) +
                                                              static_cast<std::uint32_t>(span.steps[axis]));
    }
    size_ = static_cast<std::size_t>(to - bytes_.data());
}

Digest128 DigestBlock::digest() const noexcept {
    NINFER_ASSERT_LT(0, tokens_);
    return xxh3_128({bytes_.data(), size_});
}

}  // namespace ninfer
