#include "cpp/program/ledger_store.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace ninfer {

namespace {

using Runs = LedgerStore::Runs;

// A new run has room for this many spans and a ledger for this many changes of origin, so that decode rounds do not
// allocate where text goes on.
constexpr std::size_t kSpansAtStart = 4;

// Corrects both parts of a run that was cut where `second` now begins; `first` got a copy of the data.
void divide(Runs::Run& first, Runs::Run& second) {
    const std::int64_t border = second.begin;
    const auto marks = static_cast<std::ptrdiff_t>(LedgerStore::marks_between(first.begin, border));
    first.data.grows = false;
    first.data.marks.resize(static_cast<std::size_t>(marks));
    std::erase_if(first.data.spans, [&](const TokenSpan& span) { return span.begin >= border; });
    second.data.marks.erase(second.data.marks.begin(), second.data.marks.begin() + marks);
    auto& spans = second.data.spans;
    spans.erase(spans.begin(), spans.begin() + static_cast<std::ptrdiff_t>(find_span(spans, border)));
    spans.front().first = spans.front().at(border);
    spans.front().begin = border;
}

// Whether to join two neighbours, and the joint data. Only runs of like length are joined: a token is copied a few
// times while its ledger grows by turns, and a ledger has few runs. All memory is there before anything changes.
bool join(Runs::Run& first, Runs::Run& second) {
    if (second.data.grows || first.size() > 2 * second.size()) return false;
    first.elements.reserve(static_cast<std::size_t>(first.size() + second.size()));
    first.data.spans.reserve(first.data.spans.size() + second.data.spans.size());
    first.data.marks.reserve(first.data.marks.size() + second.data.marks.size());
    for (const TokenSpan& span : second.data.spans) append_span(first.data.spans, span);
    first.data.marks.insert(first.data.marks.end(), second.data.marks.begin(), second.data.marks.end());
    second.data = std::move(first.data);
    return true;
}

// Position of text that follows a token.
std::int32_t position_after(const TokenFacts& facts) {
    const std::int32_t last = *std::max_element(facts.positions.begin(), facts.positions.end());
    NINFER_ASSERT_LT(last, std::numeric_limits<std::int32_t>::max());
    return last + 1;
}

}  // namespace

LedgerId LedgerStore::open(const IdentityHeader& header, std::int64_t room) {
    NINFER_ASSERT_LE(0, room);
    Ledger ledger;
    ledger.room = room;
    ledger.header = take_header(header);
    ledger.origins.reserve(kSpansAtStart);
    if (room > 0) start_run(ledger, RunId{}, {});
    return ledgers_.insert(std::move(ledger));
}

Result<LedgerId, Refusal> LedgerStore::fork(LedgerId source, std::int64_t frontier, std::int64_t room) {
    const auto found = ledgers_.find(source);
    if (!found) return found.error();
    Ledger& from = *found.value();
    if (frontier < 0 || frontier > from.length) return Refusal{RefusalKind::kBeyondFrontier, frontier, from.length};
    if (room < frontier) return Refusal{RefusalKind::kOverReservation, frontier, room};

    if (frontier == from.length && from.has_room()) leave_run(from);
    const RunId shared = cut(from.last, frontier);
    Ledger made;
    made.length = frontier;
    made.room = room;
    made.header = from.header;
    ++headers_[made.header].ledgers;
    made.origins.reserve(kSpansAtStart);
    if (frontier > 0) made.origins.push_back({0, TokenOrigin::kPrompt});
    const auto kept = std::upper_bound(from.rewrite_frontiers.begin(), from.rewrite_frontiers.end(), frontier);
    made.rewrite_frontiers.assign(from.rewrite_frontiers.begin(), kept);
    if (made.has_room()) {
        start_run(made, shared, {});
    } else {
        made.last = shared;
        runs_.attach(shared);
    }
    return ledgers_.insert(std::move(made));
}

Result<Nothing, Refusal> LedgerStore::append(LedgerId ledger, const LedgerTokens& tokens) {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    Ledger& to = *found.value();
    const std::int64_t begin = to.length;
    const std::int64_t end = begin + std::ssize(tokens.ids);
    if (end > to.room) return Refusal{RefusalKind::kOverReservation, end, to.room};
    if (tokens.ids.empty()) return Nothing{};

    TokenSpan text;
    std::span<const TokenSpan> spans = tokens.spans;
    if (spans.empty()) {
        text = text_span(begin, begin == 0 ? 0 : position_after(facts(ledger, begin - 1).value()));
        spans = {&text, 1};
    }
    NINFER_ASSERT_EQ(spans.front().begin, begin);
    NINFER_ASSERT_LT(spans.back().begin, end);
    Runs::Run& run = runs_.run(to.last);
    NINFER_ASSERT_EQ(run.holders, 1);
    NINFER_ASSERT_LE(end - run.begin, static_cast<std::int64_t>(run.elements.capacity()));
    run.elements.insert(run.elements.end(), tokens.ids.begin(), tokens.ids.end());
    for (const TokenSpan& span : spans) append_span(run.data.spans, span);
    for (std::int64_t at = (begin / kDigestBlockTokens + 1) * kDigestBlockTokens; at <= end; at += kDigestBlockTokens)
        run.data.marks.push_back(chain_digest(to, to.last, at));
    if (to.origins.empty() || to.origins.back().origin != tokens.origin) to.origins.push_back({begin, tokens.origin});
    to.length = end;
    run.data.grows = to.has_room();
    return Nothing{};
}

Result<Nothing, Refusal> LedgerStore::record_rewrite_frontier(LedgerId ledger, std::int64_t frontier) {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    Ledger& to = *found.value();
    if (frontier > to.length) return Refusal{RefusalKind::kBeyondFrontier, frontier, to.length};
    const std::int64_t last = to.rewrite_frontiers.empty() ? -1 : to.rewrite_frontiers.back();
    if (frontier <= last || frontier < 0) return Refusal{RefusalKind::kBackwards, frontier, last};
    to.rewrite_frontiers.push_back(frontier);
    return Nothing{};
}

Result<Nothing, Refusal> LedgerStore::seal(LedgerId ledger) {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    Ledger& to = *found.value();
    if (to.has_room()) drop_room(to);
    compact(to.last);
    return Nothing{};
}

void LedgerStore::compact(RunId last) { runs_.compact(last, join); }

void LedgerStore::detach(RunId last) {
    const RunId left = runs_.detach(last, [](Runs::Run&) {});
    if (!left.none()) compact(runs_.end_of_common(left));
}

void LedgerStore::drop_room(Ledger& ledger) {
    ledger.room = ledger.length;
    Runs::Run& run = runs_.run(ledger.last);
    if (run.size() > 0) {
        run.data.grows = false;
        run.elements.shrink_to_fit();
        run.data.marks.shrink_to_fit();
        run.data.spans.shrink_to_fit();
        return;
    }
    const RunId before = run.parent;
    runs_.attach(before);
    runs_.detach(ledger.last, [](Runs::Run&) {});
    ledger.last = before;
}

Result<Nothing, Refusal> LedgerStore::release(LedgerId ledger) {
    const auto found = ledgers_.find(ledger);
    if (!found) return found.error();
    const Ledger released = ledgers_.erase(ledger);
    detach(released.last);
    Header& header = headers_[released.header];
    NINFER_ASSERT_LE(1, header.ledgers);
    if (--header.ledgers == 0) header = Header{};
    return Nothing{};
}

std::uint32_t LedgerStore::take_header(const IdentityHeader& header) {
    const Digest128 digest = identity_digest(header);
    const auto same = std::find_if(headers_.begin(), headers_.end(), [&](const Header& known) {
        return known.ledgers > 0 && known.digest == digest && known.header == header;
    });
    auto place = same;
    if (same == headers_.end()) {
        place = std::find_if(headers_.begin(), headers_.end(), [](const Header& known) { return known.ledgers == 0; });
        if (place == headers_.end()) place = headers_.insert(place, Header{});
        place->header = header;
        place->digest = digest;
    }
    ++place->ledgers;
    return static_cast<std::uint32_t>(place - headers_.begin());
}

void LedgerStore::start_run(Ledger& ledger, RunId parent, std::vector<std::int32_t> memory) {
    const RunId id = runs_.append_run(parent);
    runs_.attach(id);
    Runs::Run& run = runs_.run(id);
    run.data.grows = true;
    run.data.spans.reserve(kSpansAtStart);
    run.data.marks.reserve(marks_between(run.begin, ledger.room));
    memory.clear();
    memory.reserve(static_cast<std::size_t>(ledger.room - run.begin));
    run.elements = std::move(memory);
    ledger.last = id;
}

void LedgerStore::leave_run(Ledger& ledger) {
    const RunId left_id = ledger.last;
    if (runs_.run(left_id).size() == 0) return;  // nothing that another one could hold
    Runs::Run& left = runs_.run(left_id);
    // The memory for the ledger's room goes on with the ledger; the run keeps a copy of its own size.
    std::vector<std::int32_t> memory = std::exchange(left.elements, std::vector<std::int32_t>(left.elements));
    left.data.grows = false;
    left.data.marks.shrink_to_fit();
    start_run(ledger, left_id, std::move(memory));
    runs_.detach(left_id, [](Runs::Run&) {});
}

RunId LedgerStore::cut(RunId last, std::int64_t frontier) {
    return runs_.cut(last, frontier, [](Runs::Run& first, Runs::Run& second) { divide(first, second); });
}

}  // namespace ninfer
