#pragma once

// Ledgers as plain vectors with one entry per token: the oracle of LedgerStore and LedgerVerifier.

#include <algorithm>
#include <random>
#include <vector>

#include "cpp/program/ledger_store.h"
#include "cpp/program/ledger_verifier.h"

namespace ninfer::testing_support {

struct NaiveLedger {
    IdentityHeader header;
    std::int64_t room = 0;
    std::vector<std::int32_t> ids;
    std::vector<TokenFacts> facts;
    std::vector<TokenOrigin> origins;
    std::vector<std::int64_t> rewrite_frontiers;

    std::int64_t length() const { return std::ssize(ids); }

    // The first `frontier` tokens, as another request's prompt.
    NaiveLedger prefix(std::int64_t frontier) const {
        const auto count = static_cast<std::size_t>(frontier);
        NaiveLedger made{header, frontier, {}, {}, {}, {}};
        made.ids.assign(ids.begin(), ids.begin() + frontier);
        made.facts.assign(facts.begin(), facts.begin() + frontier);
        made.origins.assign(count, TokenOrigin::kPrompt);
        for (const auto at : rewrite_frontiers)
            if (at <= frontier) made.rewrite_frontiers.push_back(at);
        return made;
    }

    // The longest spans that say it: a request's.
    std::vector<TokenSpan> long_spans() const {
        std::vector<TokenSpan> spans;
        for (std::size_t i = 0; i < facts.size(); ++i) {
            if (!spans.empty() && spans.back().at(static_cast<std::int64_t>(i)) == facts[i]) continue;
            TokenSpan span{static_cast<std::int64_t>(i), facts[i], {0, 0, 0}};
            for (std::size_t axis = 0; axis < kPositionAxes && i + 1 < facts.size(); ++axis)
                span.steps[axis] = facts[i + 1].positions[axis] - facts[i].positions[axis];
            spans.push_back(span);
        }
        return spans;
    }

    // One span per token: as far from how the store keeps them as the same facts can be.
    std::vector<TokenSpan> single_spans() const {
        std::vector<TokenSpan> spans;
        for (std::size_t i = 0; i < facts.size(); ++i)
            spans.push_back({static_cast<std::int64_t>(i), facts[i], {7, -3, 0}});
        return spans;
    }
};

// What verification must answer, token by token.
inline Verification naive_verification(const NaiveLedger& prompt, const NaiveLedger& ledger, std::int64_t frontier) {
    if (prompt.header.salt != ledger.header.salt) return {0, Difference::kSalt, false};
    if (prompt.header.mode != ledger.header.mode) return {0, Difference::kMode, false};
    if (prompt.header.rope_delta != ledger.header.rope_delta) return {0, Difference::kRopeDelta, false};
    std::int64_t i = 0;
    Difference difference = Difference::kNone;
    for (; i < std::min(prompt.length(), ledger.length()); ++i) {
        const auto at = static_cast<std::size_t>(i);
        const TokenFacts& left = prompt.facts[at];
        const TokenFacts& right = ledger.facts[at];
        if (prompt.ids[at] != ledger.ids[at])
            difference = Difference::kToken;
        else if (left.type != right.type)
            difference = Difference::kType;
        else if (left.positions != right.positions)
            difference = Difference::kPosition;
        else if (left.media != right.media)
            difference = Difference::kMedia;
        if (difference != Difference::kNone) break;
    }
    return {i, difference, i >= frontier};
}

// Tokens as a request might bring them: text, and now and then media in rows.
struct TokenBatch {
    std::vector<std::int32_t> ids;
    std::vector<TokenSpan> spans;
    std::vector<TokenFacts> facts;
};

class TokenSource {
   public:
    explicit TokenSource(std::mt19937_64& engine) : engine_(engine) {}

    std::int64_t below(std::int64_t end) { return std::uniform_int_distribution<std::int64_t>(0, end - 1)(engine_); }

    // `text`: without spans, positions going on after `before` (none: from 0).
    TokenBatch tokens(std::int64_t begin, std::int64_t count, const TokenFacts* before, bool text) {
        TokenBatch batch;
        for (std::int64_t i = 0; i < count; ++i) batch.ids.push_back(static_cast<std::int32_t>(below(3)));
        std::int32_t next = 0;
        if (before != nullptr) next = std::ranges::max(before->positions) + 1;
        for (std::int64_t made = 0; made < count;) {
            const std::int64_t length = text ? count : std::min(count - made, 1 + below(90));
            TokenSpan span{begin + made, {kTextType, {next, next, next}, std::nullopt}, {1, 1, 1}};
            if (!text && below(3) == 0) span = media_row(begin + made, next);
            if (!text) batch.spans.push_back(span);
            for (std::int64_t i = 0; i < length; ++i) batch.facts.push_back(facts_of(span, i));
            next = std::ranges::max(batch.facts.back().positions) + 1;
            made += length;
        }
        return batch;
    }

   private:
    TokenSpan media_row(std::int64_t begin, std::int32_t next) {
        const auto media = static_cast<std::uint64_t>(below(2));
        const MediaPiece piece{{media, 1}, below(2) * 16};
        return {begin, {1, {next, next + static_cast<std::int32_t>(below(2)), next}, piece}, {0, 0, 1}};
    }
    static TokenFacts facts_of(const TokenSpan& span, std::int64_t offset) {
        TokenFacts facts = span.first;
        for (std::int64_t i = 0; i < offset; ++i) {
            for (std::size_t axis = 0; axis < kPositionAxes; ++axis) facts.positions[axis] += span.steps[axis];
            if (facts.media) ++facts.media->offset;
        }
        return facts;
    }

    std::mt19937_64& engine_;
};

}  // namespace ninfer::testing_support
