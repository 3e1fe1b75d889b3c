// What a LedgerStore checks and counts of itself.

#include <algorithm>

#include "cpp/program/ledger_store.h"

namespace ninfer {

void LedgerStore::check_run(const Ledger& ledger, RunId id) const {
    const Runs::Run& run = runs_.run(id);
    const LedgerRun& data = run.data;
    NINFER_ASSERT_EQ(data.marks.size(), marks_between(run.begin, run.end()));
    NINFER_ASSERT_EQ(data.spans.empty(), run.size() == 0);
    for (std::size_t i = 0; i < data.spans.size(); ++i) {
        if (i == 0) NINFER_ASSERT_EQ(data.spans[i].begin, run.begin);
        if (i > 0) NINFER_ASSERT_LT(data.spans[i - 1].begin, data.spans[i].begin);
        NINFER_ASSERT_LT(data.spans[i].begin, run.end());
    }
    for (std::size_t i = 0; i < data.marks.size(); ++i) {
        const std::int64_t frontier =
            (run.begin / kDigestBlockTokens + 1 + static_cast<std::int64_t>(i)) * kDigestBlockTokens;
        NINFER_ASSERT(data.marks[i] == chain_digest(ledger, id, frontier), "a kept digest is not the chain's");
    }
}

void LedgerStore::check_ledger(const Ledger& ledger) const {
    NINFER_ASSERT_EQ(ledger.length, runs_.length(ledger.last));
    NINFER_ASSERT_LE(ledger.length, ledger.room);
    NINFER_ASSERT_LT(ledger.header, headers_.size());
    NINFER_ASSERT_EQ(ledger.origins.empty(), ledger.length == 0);
    std::int64_t before = -1;
    for (const OriginSpan& span : ledger.origins) {
        NINFER_ASSERT_LT(before, span.begin);
        NINFER_ASSERT_LT(span.begin, ledger.length);
        before = span.begin;
    }
    before = -1;
    for (const std::int64_t frontier : ledger.rewrite_frontiers) {
        NINFER_ASSERT_LT(before, frontier);
        NINFER_ASSERT_LE(frontier, ledger.length);
        before = frontier;
    }
    if (ledger.has_room()) {
        const Runs::Run& own = runs_.run(ledger.last);
        NINFER_ASSERT_EQ(own.holders, 1);
        NINFER_ASSERT(own.data.grows, "a ledger has room, and its run may be joined with others");
        NINFER_ASSERT_LE(ledger.room - own.begin, static_cast<std::int64_t>(own.elements.capacity()));
        NINFER_ASSERT_LE(marks_between(own.begin, ledger.room), own.data.marks.capacity());
    }
}

void LedgerStore::check_invariants() const {
    std::vector<RunId> ends;
    std::int64_t growing = 0;
    std::vector<std::int64_t> ledgers(headers_.size(), 0);
    ledgers_.for_each([&](LedgerId, const Ledger& ledger) {
        check_ledger(ledger);
        ends.push_back(ledger.last);
        growing += ledger.has_room() ? 1 : 0;
        ++ledgers[ledger.header];
    });
    runs_.check_invariants(ends);
    runs_.for_each([&](RunId, const Runs::Run& run) { growing -= run.data.grows ? 1 : 0; });
    NINFER_ASSERT_EQ(growing, 0);
    for (std::size_t i = 0; i < headers_.size(); ++i) {
        NINFER_ASSERT_EQ(headers_[i].ledgers, ledgers[i]);
        if (ledgers[i] == 0) continue;
        NINFER_ASSERT(headers_[i].digest == identity_digest(headers_[i].header), "a header's digest is not its own");
        for (std::size_t j = 0; j < i; ++j)
            NINFER_ASSERT(ledgers[j] == 0 || !(headers_[i].header == headers_[j].header), "a header exists twice");
    }
    check_runs();
}

// Each run once, with a ledger that holds it.
void LedgerStore::check_runs() const {
    std::vector<bool> seen;
    runs_.for_each([&](RunId id, const Runs::Run&) {
        seen.resize(std::max(seen.size(), static_cast<std::size_t>(id.value) + 1), false);
    });
    ledgers_.for_each([&](LedgerId, const Ledger& ledger) {
        for (RunId id = ledger.last; !id.none(); id = runs_.run(id).parent) {
            const auto index = static_cast<std::size_t>(id.value);
            if (seen[index]) break;
            seen[index] = true;
            check_run(ledger, id);
        }
    });
}

namespace {

void add_digest(Fingerprint& print, const Digest128& digest) {
    print.add(digest.low);
    print.add(digest.high);
}

void add_token_span(Fingerprint& print, const TokenSpan& span) {
    print.add(span.begin);
    print.add(span.first.type);
    for (const auto position : span.first.positions) print.add(position);
    for (const auto step : span.steps) print.add(step);
    print.add(span.first.media.has_value());
    if (!span.first.media) return;
    add_digest(print, span.first.media->digest);
    print.add(span.first.media->offset);
}

void add_run(Fingerprint& print, const LedgerStore::Runs::Run& run) {
    for (const std::int32_t id : run.elements) print.add(id);
    print.add(run.data.marks.size());
    for (const Digest128& mark : run.data.marks) add_digest(print, mark);
    print.add(run.data.grows);
    print.add(run.data.spans.size());
    for (const TokenSpan& span : run.data.spans) add_token_span(print, span);
}

}  // namespace

std::uint64_t LedgerStore::fingerprint() const {
    Fingerprint print;
    ledgers_.add_to(print, [](Fingerprint& into, const Ledger& ledger) {
        into.add(ledger.last.value);
        into.add(ledger.length);
        into.add(ledger.room);
        into.add(ledger.header);
        into.add(ledger.origins.size());
        for (const OriginSpan& span : ledger.origins) into.add(span.begin * 2 + static_cast<std::int64_t>(span.origin));
        into.add(ledger.rewrite_frontiers.size());
        for (const std::int64_t frontier : ledger.rewrite_frontiers) into.add(frontier);
    });
    for (const Header& header : headers_) {
        add_digest(print, header.digest);
        print.add(header.ledgers);
    }
    runs_.add_to(print, add_run);
    return print.value();
}

std::size_t LedgerStore::bookkeeping_bytes() const {
    std::size_t bytes =
        sizeof(*this) + runs_.memory_bytes() + ledgers_.memory_bytes() + headers_.capacity() * sizeof(Header);
    runs_.for_each([&](RunId, const Runs::Run& run) {
        bytes += run.data.marks.capacity() * sizeof(Digest128) + run.data.spans.capacity() * sizeof(TokenSpan);
    });
    ledgers_.for_each([&](LedgerId, const Ledger& ledger) {
        bytes +=
            ledger.origins.capacity() * sizeof(OriginSpan) + ledger.rewrite_frontiers.capacity() * sizeof(std::int64_t);
    });
    for (const Header& header : headers_) bytes += header.header.salt.capacity() + header.header.mode.capacity();
    return bytes;
}

}  // namespace ninfer
