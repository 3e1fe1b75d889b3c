// What a LedgerStore says of its ledgers.

#include <algorithm>
#include <array>

#include "cpp/program/ledger_store.h"

namespace ninfer {

std::span<const std::int32_t> LedgerStore::ids_in(const Runs::Run& run, std::int64_t begin, std::int64_t end) {
    NINFER_ASSERT_LE(run.begin, begin);
    NINFER_ASSERT_LE(end, run.end());
    return std::span(run.elements)
        .subspan(static_cast<std::size_t>(begin - run.begin), static_cast<std::size_t>(end - begin));
}

std::size_t LedgerStore::marks_between(std::int64_t begin, std::int64_t end) {
    return static_cast<std::size_t>(end / kDigestBlockTokens - begin / kDigestBlockTokens);
}

Digest128 LedgerStore::chain_digest(const Ledger& ledger, RunId last, std::int64_t frontier) const {
    const Digest128& root = headers_[ledger.header].digest;
    if (frontier == 0) return root;
    const std::int64_t begin = (frontier - 1) / kDigestBlockTokens * kDigestBlockTokens;
    // The runs of the block's tokens, last ones first; each has at least one of them.
    std::array<const Runs::Run*, kDigestBlockTokens> path;
    std::size_t runs = 0;
    RunId id = last;
    while (runs_.run(id).begin >= frontier) id = runs_.run(id).parent;
    for (path[runs++] = &runs_.run(id); path[runs - 1]->begin > begin; path[runs - 1] = &runs_.run(id)) {
        id = path[runs - 1]->parent;
        ++runs;
    }
    const Runs::Run& first = *path[runs - 1];
    const auto mark_at = [&](const Runs::Run& run) { return run.data.marks[marks_between(run.begin, begin) - 1]; };
    Digest128 before = root;
    if (begin > 0) before = first.begin < begin ? mark_at(first) : mark_at(runs_.run(first.parent));
    DigestBlock block(before);
    for (; runs > 0; --runs) {
        const Runs::Run& run = *path[runs - 1];
        const std::int64_t from = std::max(begin, run.begin);
        block.add(from, ids_in(run, from, std::min(frontier, run.end())), run.data.spans);
    }
    return block.digest();
}

Result<std::int64_t, Refusal> LedgerStore::length(LedgerId ledger) const {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    return found.value()->length;
}

Result<std::int64_t, Refusal> LedgerStore::room(LedgerId ledger) const {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    return found.value()->room;
}

Result<const IdentityHeader*, Refusal> LedgerStore::header(LedgerId ledger) const {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    return &headers_[found.value()->header].header;
}

Result<Nothing, Refusal> LedgerStore::read(LedgerId ledger, std::int64_t begin, std::span<std::int32_t> out) const {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    const std::int64_t end = begin + std::ssize(out);
    const std::int64_t length = found.value()->length;
    if (begin < 0) return Refusal{RefusalKind::kBeyondFrontier, begin, length};
    if (end > length) return Refusal{RefusalKind::kBeyondFrontier, end, length};
    runs_.for_each_of(found.value()->last, [&](RunId, const Runs::Run& run) {
        const std::int64_t first = std::max(begin, run.begin);
        const std::int64_t last = std::min(end, run.end());
        if (first < last) std::ranges::copy(ids_in(run, first, last), out.begin() + (first - begin));
    });
    return Nothing{};
}

Result<const LedgerStore::Runs::Run*, Refusal> LedgerStore::run_at(LedgerId ledger, std::int64_t index) const {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    const std::int64_t length = found.value()->length;
    if (index < 0) return Refusal{RefusalKind::kBeyondFrontier, index, length};
    if (index >= length) return Refusal{RefusalKind::kBeyondFrontier, index + 1, length};
    RunId id = found.value()->last;
    while (runs_.run(id).begin > index) id = runs_.run(id).parent;
    // An empty last run begins at the end, where there is no token to ask about.
    NINFER_ASSERT_LT(index, runs_.run(id).end());
    return &runs_.run(id);
}

Result<std::span<const std::int32_t>, Refusal> LedgerStore::view(LedgerId ledger, std::int64_t begin) const {
    const auto known = length(ledger);
    if (!known) return known.error();
    if (begin == known.value()) return std::span<const std::int32_t>{};
    const auto run = run_at(ledger, begin);
    if (!run) return run.error();
    return ids_in(*run.value(), begin, run.value()->end());
}

Result<TokenFacts, Refusal> LedgerStore::facts(LedgerId ledger, std::int64_t index) const {
    const auto run = run_at(ledger, index);
    if (!run) return run.error();
    const auto& spans = run.value()->data.spans;
    return spans[find_span(spans, index)].at(index);
}

Result<Digest128, Refusal> LedgerStore::digest_at(LedgerId ledger, std::int64_t frontier) const {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    const Ledger& of = *found.value();
    if (frontier < 0 || frontier > of.length) return Refusal{RefusalKind::kBeyondFrontier, frontier, of.length};
    return chain_digest(of, of.last, frontier);
}

Result<std::int64_t, Refusal> LedgerStore::count(LedgerId ledger, TokenOrigin origin, std::int64_t begin,
                                                 std::int64_t end) const {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    const Ledger& in = *found.value();
    if (begin < 0 || begin > end) return Refusal{RefusalKind::kBackwards, begin, end};
    if (end > in.length) return Refusal{RefusalKind::kBeyondFrontier, end, in.length};
    std::int64_t tokens = 0;
    for (std::size_t i = 0; i < in.origins.size(); ++i) {
        const std::int64_t span_end = i + 1 < in.origins.size() ? in.origins[i + 1].begin : in.length;
        if (in.origins[i].origin != origin) continue;
        tokens += std::max<std::int64_t>(0, std::min(end, span_end) - std::max(begin, in.origins[i].begin));
    }
    return tokens;
}

Result<std::span<const std::int64_t>, Refusal> LedgerStore::rewrite_frontiers(LedgerId ledger) const {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    return std::span<const std::int64_t>(found.value()->rewrite_frontiers);
}

}  // namespace ninfer
