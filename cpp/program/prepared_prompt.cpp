#include "cpp/program/prepared_prompt.h"

#include <utility>

#include "cpp/base/assert.h"
#include "cpp/program/prefix_digest.h"

namespace ninfer {

PreparedPrompt::PreparedPrompt(IdentityHeader header, std::vector<std::int32_t> tokens, std::vector<TokenSpan> spans)
    : header_(std::move(header)), tokens_(std::move(tokens)), spans_(std::move(spans)) {
    NINFER_ASSERT_LE(1, size());
    std::vector<std::int64_t> frontiers;
    for (std::int64_t frontier = 0; frontier <= size(); frontier += kDigestBlockTokens) frontiers.push_back(frontier);
    marks_.resize(frontiers.size());
    prefix_digests(view(), frontiers, marks_);
}

Digest128 PreparedPrompt::digest_at(std::int64_t frontier) const {
    NINFER_ASSERT_LE(0, frontier);
    NINFER_ASSERT_LE(frontier, size());
    const std::int64_t begin = frontier - frontier % kDigestBlockTokens;
    const Digest128& before = marks_[static_cast<std::size_t>(begin / kDigestBlockTokens)];
    if (begin == frontier) return before;
    DigestBlock block(before);
    block.add(begin, tokens().subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(frontier - begin)),
              view().all_spans());
    return block.digest();
}

void PreparedPrompt::match(std::span<const std::int64_t> frontiers, std::span<const Digest128> digests,
                           std::span<bool> matches) const {
    NINFER_ASSERT_EQ(frontiers.size(), digests.size());
    NINFER_ASSERT_EQ(frontiers.size(), matches.size());
    std::int64_t last = -1;
    Digest128 found{};
    for (std::size_t i = 0; i < frontiers.size(); ++i) {
        const std::int64_t frontier = frontiers[i];
        matches[i] = false;
        if (frontier < 0 || frontier > size()) continue;
        if (frontier != last) found = digest_at(frontier);
        last = frontier;
        matches[i] = found == digests[i];
    }
}

}  // namespace ninfer
