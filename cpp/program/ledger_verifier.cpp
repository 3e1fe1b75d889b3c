#include "cpp/program/ledger_verifier.h"

#include <algorithm>
#include <cstring>

namespace ninfer {

namespace {

using Runs = LedgerStore::Runs;

Difference header_difference(const IdentityHeader& left, const IdentityHeader& right) {
    if (left.salt != right.salt) return Difference::kSalt;
    if (left.mode != right.mode) return Difference::kMode;
    return left.rope_delta == right.rope_delta ? Difference::kNone : Difference::kRopeDelta;
}

Difference facts_difference(const TokenFacts& left, const TokenFacts& right) {
    if (left.type != right.type) return Difference::kType;
    if (left.positions != right.positions) return Difference::kPosition;
    NINFER_ASSERT(left.media != right.media, "facts that differ are equal");
    return Difference::kMedia;
}

// Ids that are equal at the beginning. Blocks go through memcmp, and only the one that differs is searched.
std::int64_t equal_ids(std::span<const std::int32_t> left, std::span<const std::int32_t> right) {
    constexpr std::size_t kBlock = 2048;
    std::size_t begin = 0;
    while (begin < left.size()) {
        const std::size_t count = std::min(kBlock, left.size() - begin);
        if (std::memcmp(left.data() + begin, right.data() + begin, count * sizeof(std::int32_t)) != 0) break;
        begin += count;
    }
    const auto rest = left.subspan(begin);
    const auto differ = std::mismatch(rest.begin(), rest.begin() + std::min(std::ssize(rest), std::int64_t{kBlock}),
                                      right.begin() + static_cast<std::ptrdiff_t>(begin));
    return differ.first - left.begin();
}

}  // namespace

Result<Nothing, Refusal> LedgerVerifier::verify(const PromptView& prompt, std::span<const LedgerCandidate> candidates,
                                                std::span<Verification> verifications) {
    NINFER_ASSERT_EQ(candidates.size(), verifications.size());
    for (const LedgerCandidate& candidate : candidates) {
        const auto length = store_.length(candidate.ledger);
        if (!length) return length.error();
        if (candidate.frontier < 0 || candidate.frontier > length.value())
            return Refusal{RefusalKind::kBeyondFrontier, candidate.frontier, length.value()};
    }
    ++call_;
    // Candidates mostly have one header, which is then compared once.
    const IdentityHeader* header = nullptr;
    Difference differs = Difference::kNone;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
        const IdentityHeader* const own = store_.header(candidates[i].ledger).value();
        if (own != header) differs = header_difference(*own, *prompt.header);
        header = own;
        Verification& answer = verifications[i];
        answer = {0, differs, false};
        if (differs != Difference::kNone) continue;
        const Memo reached = match_chain(prompt, store_.last_run(candidates[i].ledger));
        answer = {reached.matched, reached.difference, reached.matched >= candidates[i].frontier};
    }
    return Nothing{};
}

LedgerVerifier::Memo LedgerVerifier::match_chain(const PromptView& prompt, RunId last) {
    path_.clear();
    RunId id = last;
    while (!id.none() && memo_of(id).call != call_) {
        path_.push_back(id);
        id = store_.runs().run(id).parent;
    }
    Memo reached = id.none() ? Memo{call_} : memo_of(id);
    for (; !path_.empty(); path_.pop_back()) {
        const Runs::Run& run = store_.runs().run(path_.back());
        // What differs before a run differs for all that comes after it.
        if (reached.difference == Difference::kNone && reached.matched == run.begin) reached = match_run(prompt, run);
        memo_of(path_.back()) = reached;
    }
    return reached;
}

LedgerVerifier::Memo LedgerVerifier::match_run(const PromptView& prompt, const Runs::Run& run) const {
    const std::int64_t end = std::min(run.end(), std::ssize(prompt.tokens));
    const auto ids =
        prompt.tokens.subspan(static_cast<std::size_t>(run.begin), static_cast<std::size_t>(end - run.begin));
    const std::int64_t ids_end = run.begin + equal_ids(LedgerStore::ids_in(run, run.begin, end), ids);
    const auto spans = prompt.all_spans();
    const std::int64_t matched = first_difference(run.data.spans, spans, run.begin, ids_end);
    if (matched < ids_end) {
        const TokenFacts own = run.data.spans[find_span(run.data.spans, matched)].at(matched);
        return {call_, matched, facts_difference(own, spans[find_span(spans, matched)].at(matched))};
    }
    return {call_, matched, ids_end < end ? Difference::kToken : Difference::kNone};
}

LedgerVerifier::Memo& LedgerVerifier::memo_of(RunId id) {
    const auto index = static_cast<std::size_t>(id.value);
    if (index >= memos_.size()) memos_.resize(index + 1);
    return memos_[index];
}

}  // namespace ninfer
