#include "cpp/program/token_span.h"

#include <gtest/gtest.h>

namespace ninfer {
namespace {

TokenSpan row(std::int64_t begin, AxisPositions positions, AxisPositions steps) {
    return {begin, {1, positions, MediaPiece{{7, 8}, 0}}, steps};
}

TEST(TokenSpanTest, FactsFollowTheSteps) {
    const TokenSpan span = row(10, {5, -6, 7}, {1, 0, -2});
    EXPECT_EQ(span.at(10), span.first);
    const TokenFacts third = span.at(12);
    EXPECT_EQ(third.positions, (AxisPositions{7, -6, 3}));
    EXPECT_EQ(third.media->offset, 2);
    EXPECT_EQ(third.media->digest, (Digest128{7, 8}));
    EXPECT_EQ(third.type, 1);
}

TEST(TokenSpanTest, TextOfAnyLengthIsOneSpan) {
    std::vector<TokenSpan> spans;
    for (std::int32_t i = 0; i < 1000; ++i) append_span(spans, text_span(i, i));
    EXPECT_EQ(spans.size(), 1U);
    append_span(spans, text_span(1000, 1002));
    append_span(spans, text_span(1001, 1003));
    EXPECT_EQ(spans.size(), 2U);
    EXPECT_EQ(kTextFromStart.at(999), spans[0].at(999));
}

TEST(TokenSpanTest, MediaGoesOnOnlyAtItsNextToken) {
    std::vector<TokenSpan> spans = {row(0, {0, 0, 0}, {0, 0, 1})};
    TokenSpan next = row(4, {0, 0, 4}, {0, 0, 1});
    next.first.media->offset = 4;
    append_span(spans, next);
    EXPECT_EQ(spans.size(), 1U);
    next = row(8, {0, 0, 8}, {0, 0, 1});
    next.first.media->offset = 9;
    append_span(spans, next);
    EXPECT_EQ(spans.size(), 2U);
}

TEST(TokenSpanTest, SpansAreFoundByTheirTokens) {
    const std::vector<TokenSpan> spans = {text_span(3, 0), text_span(4, 9), text_span(10, 9)};
    EXPECT_EQ(find_span(spans, 3), 0U);
    EXPECT_EQ(find_span(spans, 4), 1U);
    EXPECT_EQ(find_span(spans, 9), 1U);
    EXPECT_EQ(find_span(spans, 10), 2U);
    EXPECT_EQ(find_span(spans, 99), 2U);
}

TEST(TokenSpanTest, DifferencesAreFoundAtTheirToken) {
    const std::vector<TokenSpan> text = {text_span(0, 0)};
    for (const std::int64_t at : {0, 1, 2, 63, 99}) {
        // From `at` on, positions lag by one.
        std::vector<TokenSpan> other;
        if (at > 0) append_span(other, text_span(0, 0));
        append_span(other, text_span(at, static_cast<std::int32_t>(at) - 1));
        EXPECT_EQ(first_difference(text, other, 0, 100), at);
        EXPECT_EQ(first_difference(other, text, 0, 100), at);
        EXPECT_EQ(first_difference(text, other, 0, at), at);
        EXPECT_EQ(first_difference(text, other, at, at), at);
    }
}

TEST(TokenSpanTest, StepsMatterFromTheSecondTokenOn) {
    const std::vector<TokenSpan> one = {row(0, {1, 1, 1}, {0, 0, 1})};
    const std::vector<TokenSpan> two = {row(0, {1, 1, 1}, {0, 1, 0})};
    EXPECT_EQ(first_difference(one, two, 0, 1), 1);
    EXPECT_EQ(first_difference(one, two, 0, 2), 1);
}

TEST(TokenSpanTest, HowTokensAreCutSaysNothing) {
    const std::vector<TokenSpan> whole = {text_span(0, 5)};
    std::vector<TokenSpan> pieces;
    for (std::int32_t i = 0; i < 20; ++i) pieces.push_back({i, {kTextType, {5 + i, 5 + i, 5 + i}, {}}, {3, 3, 3}});
    EXPECT_EQ(first_difference(whole, pieces, 0, 20), 20);
    EXPECT_EQ(first_difference(pieces, whole, 7, 13), 13);
}

}  // namespace
}  // namespace ninfer
