#pragma once

// What a token is besides its id: type, position on each axis, and the piece of media that it stands for. Neighbours
// mostly follow a rule, so that these facts are kept as spans: text of any length is one span, an image is one span per
// row of patches. Two lists of spans that say the same of every token are equal, however they are cut.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/xxh3_128.h"

namespace ninfer {

inline constexpr std::size_t kPositionAxes = 3;  // time, height, width; equal for text
using AxisPositions = std::array<std::int32_t, kPositionAxes>;

inline constexpr std::int32_t kTextType = 0;

// The piece of media behind a token.
struct MediaPiece {
    Digest128 digest;         // of the media's bytes
    std::int64_t offset = 0;  // tokens before this one in the media

    bool operator==(const MediaPiece&) const = default;
};

// What one token is.
struct TokenFacts {
    std::int32_t type = kTextType;
    AxisPositions positions{};
    std::optional<MediaPiece> media;

    bool operator==(const TokenFacts&) const = default;
};

// Tokens from `begin` to the beginning of the next span (the last one: to the end of the tokens). The facts are those of
// the first token; token i after it has positions + i * steps and media offset + i.
struct TokenSpan {
    std::int64_t begin = 0;
    TokenFacts first{};
    AxisPositions steps = {1, 1, 1};

    TokenFacts at(std::int64_t index) const noexcept;
};

// What a list without spans stands for: text whose positions are the indices of its tokens.
inline constexpr TokenSpan kTextFromStart{};

// Text from `begin` on, whose first token has this position on every axis.
TokenSpan text_span(std::int64_t begin, std::int32_t position) noexcept;

// Appends a span that starts where the tokens so far end, or lengthens the last one where it says the same.
void append_span(std::vector<TokenSpan>& spans, const TokenSpan& next);

// What the list says of the tokens from `begin` on.
std::vector<TokenSpan> spans_from(std::span<const TokenSpan> spans, std::int64_t begin);

// The span that holds the token: spans[0].begin <= index.
std::size_t find_span(std::span<const TokenSpan> spans, std::int64_t index) noexcept;

// The first token in [begin, end) of which the two lists say different things; `end` if there is none. Both lists cover
// the range.
std::int64_t first_difference(std::span<const TokenSpan> left, std::span<const TokenSpan> right, std::int64_t begin,
                              std::int64_t end) noexcept;

}  // namespace ninfer
