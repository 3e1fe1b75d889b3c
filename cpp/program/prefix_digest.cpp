#include "cpp/program/prefix_digest.h"

#include <algorithm>
#include <vector>

#include "cpp/base/assert.h"

namespace ninfer {

namespace {

std::span<const std::int32_t> ids_in(const PromptView& prompt, std::int64_t begin, std::int64_t end) {
    return prompt.tokens.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin));
}

// The digest at `end`, from the one at the beginning of the block that ends there.
Digest128 digest_behind(const Digest128& before, const PromptView& prompt, std::int64_t begin, std::int64_t end) {
    DigestBlock block(before);
    block.add(begin, ids_in(prompt, begin, end), prompt.all_spans());
    return block.digest();
}

}  // namespace

Digest128 identity_digest(const IdentityHeader& header) {
    std::vector<std::byte> record;
    const auto put = [&](const void* data, std::size_t bytes) {
        const auto* const first = static_cast<const std::byte*>(data);
        record.insert(record.end(), first, first + bytes);
    };
    const auto put_text = [&](const std::string& text) {
        const std::uint64_t bytes = text.size();
        put(&bytes, sizeof(bytes));
        put(text.data(), text.size());
    };
    put(&kPrefixDigestVersion, sizeof(kPrefixDigestVersion));
    put_text(header.salt);
    put_text(header.mode);
    put(&header.rope_delta, sizeof(header.rope_delta));
    return xxh3_128(record);
}

void prefix_digests(const PromptView& prompt, std::span<const std::int64_t> frontiers, std::span<Digest128> digests) {
    NINFER_ASSERT_EQ(frontiers.size(), digests.size());
    Digest128 before = identity_digest(*prompt.header);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < frontiers.size(); ++i) {
        NINFER_ASSERT_LE(i == 0 ? 0 : frontiers[i - 1], frontiers[i]);
        NINFER_ASSERT_LE(frontiers[i], std::ssize(prompt.tokens));
        for (; begin + kDigestBlockTokens <= frontiers[i]; begin += kDigestBlockTokens)
            before = digest_behind(before, prompt, begin, begin + kDigestBlockTokens);
        digests[i] = begin < frontiers[i] ? digest_behind(before, prompt, begin, frontiers[i]) : before;
    }
}

void all_prefix_digests(const PromptView& prompt, std::span<Digest128> digests) {
    NINFER_ASSERT_EQ(digests.size(), prompt.tokens.size() + 1);
    digests[0] = identity_digest(*prompt.header);
    const std::int64_t tokens = std::ssize(prompt.tokens);
    for (std::int64_t begin = 0; begin < tokens; begin += kDigestBlockTokens) {
        DigestBlock block(digests[static_cast<std::size_t>(begin)]);
        for (std::int64_t i = begin; i < std::min(begin + kDigestBlockTokens, tokens); ++i) {
            block.add(i, ids_in(prompt, i, i + 1), prompt.all_spans());
            digests[static_cast<std::size_t>(i) + 1] = block.digest();
        }
    }
}

}  // namespace ninfer
