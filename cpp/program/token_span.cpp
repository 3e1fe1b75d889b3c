#include "cpp/program/token_span.h"

#include <algorithm>

#include "cpp/base/assert.h"

namespace ninfer {

namespace {

// Whether both say the same of every token from `begin` on that they share; `tokens` of them are asked about.
bool agree_after(const TokenSpan& left, const TokenSpan& right, std::int64_t tokens) {
    // Equal at the first token: the rest follows from the steps alone.
    return tokens <= 1 || left.steps == right.steps;
}

}  // namespace

TokenFacts TokenSpan::at(std::int64_t index) const noexcept {
    NINFER_ASSERT_LE(begin, index);
    const std::int64_t offset = index - begin;
    TokenFacts facts = first;
    // Positions wrap like the 32-bit integers that they are stored as; no context is that long.
    for (std::size_t axis = 0; axis < kPositionAxes; ++axis)
        facts.positions[axis] = static_cast<std::int32_t>(facts.positions[axis] + steps[axis] * offset);
    if (facts.media) facts.media->offset += offset;
    return facts;
}

TokenSpan text_span(std::int64_t begin, std::int32_t position) noexcept {
    return {begin, {kTextType, {position, position, position}, std::nullopt}, {1, 1, 1}};
}

void append_span(std::vector<TokenSpan>& spans, const TokenSpan& next) {
    if (!spans.empty()) {
        const TokenSpan& last = spans.back();
        NINFER_ASSERT_LT(last.begin, next.begin);
        if (last.steps == next.steps && last.at(next.begin) == next.first) return;
    }
    spans.push_back(next);
}

std::vector<TokenSpan> spans_from(std::span<const TokenSpan> spans, std::int64_t begin) {
    const std::size_t first = find_span(spans, begin);
    std::vector<TokenSpan> rest(spans.begin() + static_cast<std::ptrdiff_t>(first), spans.end());
    rest.front() = {begin, spans[first].at(begin), spans[first].steps};
    return rest;
}

std::size_t find_span(std::span<const TokenSpan> spans, std::int64_t index) noexcept {
    NINFER_ASSERT(!spans.empty(), "tokens without spans");
    NINFER_ASSERT_LE(spans.front().begin, index);
    const auto after = std::upper_bound(spans.begin(), spans.end(), index,
                                        [](std::int64_t value, const TokenSpan& span) { return value < span.begin; });
    return static_cast<std::size_t>(after - spans.begin()) - 1;
}

std::int64_t first_difference(std::span<const TokenSpan> left, std::span<const TokenSpan> right, std::int64_t begin,
                              std::int64_t end) noexcept {
    if (begin >= end) return end;
    std::size_t i = find_span(left, begin);
    std::size_t j = find_span(right, begin);
    for (std::int64_t from = begin; from < end;) {
        const std::int64_t left_end = i + 1 < left.size() ? left[i + 1].begin : end;
        const std::int64_t right_end = j + 1 < right.size() ? right[j + 1].begin : end;
        const std::int64_t to = std::min({left_end, right_end, end});
        if (!(left[i].at(from) == right[j].at(from))) return from;
        if (!agree_after(left[i], right[j], to - from)) return from + 1;
        if (left_end == to) ++i;
        if (right_end == to) ++j;
        from = to;
    }
    return end;
}

}  // namespace ninfer
