#pragma once

// A prompt as requests carry it from the client's thread to the worker: everything that identifies it, in its own memory,
// with the digest in front of every block of tokens. Immutable, so any thread may read it.
//
// Making one hashes all tokens once; afterwards the digest at any frontier costs at most one block.

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/program/prompt_view.h"

namespace ninfer {

class PreparedPrompt {
   public:
    // At least one token. Spans as PromptView has them.
    PreparedPrompt(IdentityHeader header, std::vector<std::int32_t> tokens, std::vector<TokenSpan> spans = {});

    std::int64_t size() const noexcept { return std::ssize(tokens_); }
    const IdentityHeader& header() const noexcept { return header_; }
    std::span<const std::int32_t> tokens() const noexcept { return tokens_; }
    PromptView view() const noexcept { return {&header_, tokens_, spans_}; }

    // frontier: 0 to size().
    Digest128 digest_at(std::int64_t frontier) const;
    // matches[i]: whether the prompt is at least frontiers[i] long and has digests[i] there. Equal frontiers in a row are
    // hashed once.
    void match(std::span<const std::int64_t> frontiers, std::span<const Digest128> digests,
               std::span<bool> matches) const;

   private:
    IdentityHeader header_;
    std::vector<std::int32_t> tokens_;
    std::vector<TokenSpan> spans_;
    std::vector<Digest128> marks_;  // [i]: in front of token i * kDigestBlockTokens
};

}  // namespace ninfer
