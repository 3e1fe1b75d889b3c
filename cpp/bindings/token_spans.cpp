#include "cpp/bindings/token_spans.h"

#include <string>

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

TokenSpan span_of(const SpanRow& row) {
    const auto& [begin, type, positions, steps, media] = row;
    TokenSpan span{begin, {type, positions, std::nullopt}, steps};
    if (media) span.first.media = MediaPiece{{std::get<0>(*media), std::get<1>(*media)}, std::get<2>(*media)};
    return span;
}

}  // namespace

std::vector<TokenSpan> token_spans(const std::vector<SpanRow>& rows, std::int64_t begin, std::int64_t end) {
    std::vector<TokenSpan> spans;
    for (const SpanRow& row : rows) {
        const TokenSpan span = span_of(row);
        if (spans.empty() && span.begin != begin)
            throw nb::value_error(("the first span must begin at " + std::to_string(begin)).c_str());
        if (!spans.empty() && span.begin <= spans.back().begin) throw nb::value_error("spans must ascend");
        if (span.begin >= end) throw nb::value_error("a span begins behind the last token");
        spans.push_back(span);
    }
    return spans;
}

}  // namespace ninfer::bindings
