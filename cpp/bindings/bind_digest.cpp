#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <tuple>

#include "cpp/bindings/bindings.h"
#include "cpp/program/prefix_digest.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using TokenArray = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
// begin, type, positions, steps, and for media: its digest's low and high half, and the offset in it.
using SpanRow = std::tuple<std::int64_t, std::int32_t, AxisPositions, AxisPositions,
                           std::optional<std::tuple<std::uint64_t, std::uint64_t, std::int64_t>>>;

nb::bytes bytes_of(const Digest128& digest) { return nb::bytes(&digest, sizeof(digest)); }

TokenSpan span_of(const SpanRow& row) {
    const auto& [begin, type, positions, steps, media] = row;
    TokenSpan span{begin, {type, positions, std::nullopt}, steps};
    if (media) span.first.media = MediaPiece{{std::get<0>(*media), std::get<1>(*media)}, std::get<2>(*media)};
    return span;
}

void require_ascending(const std::vector<TokenSpan>& spans) {
    if (!spans.empty() && spans.front().begin != 0) throw nb::value_error("the first span must begin at 0");
    for (std::size_t i = 1; i < spans.size(); ++i)
        if (spans[i].begin <= spans[i - 1].begin) throw nb::value_error("spans must ascend");
}

void require_frontiers(const std::vector<std::int64_t>& frontiers, std::int64_t tokens) {
    if (!std::is_sorted(frontiers.begin(), frontiers.end())) throw nb::value_error("frontiers must ascend");
    if (!frontiers.empty() && (frontiers.front() < 0 || frontiers.back() > tokens))
        throw nb::value_error("a frontier is not in the prompt");
}

std::vector<nb::bytes> digests_of(const IdentityHeader& header, const TokenArray& tokens,
                                  const std::vector<SpanRow>& rows, const std::vector<std::int64_t>& frontiers) {
    std::vector<TokenSpan> spans;
    for (const SpanRow& row : rows) spans.push_back(span_of(row));
    require_ascending(spans);
    require_frontiers(frontiers, static_cast<std::int64_t>(tokens.size()));
    std::vector<Digest128> digests(frontiers.size());
    const PromptView prompt{&header, {tokens.data(), tokens.size()}, spans};
    {
        const nb::gil_scoped_release release;
        prefix_digests(prompt, frontiers, digests);
    }
    std::vector<nb::bytes> out;
    for (const Digest128& digest : digests) out.push_back(bytes_of(digest));
    return out;
}

}  // namespace

void bind_digest(nb::module_& module) {
    module.def(
        "xxh3_128",
        [](const nb::bytes& data) {
            return bytes_of(xxh3_128({static_cast<const std::byte*>(data.data()), data.size()}));
        },
        nb::arg("data"), "XXH3-128 with seed 0: 16 bytes, the number little-endian.");
    module.def(
        "prefix_digests",
        [](const nb::bytes& salt, const nb::bytes& mode, std::int64_t rope_delta, const TokenArray& tokens,
           const std::vector<SpanRow>& spans, const std::vector<std::int64_t>& frontiers) {
            const IdentityHeader header{{salt.c_str(), salt.size()}, {mode.c_str(), mode.size()}, rope_delta};
            return digests_of(header, tokens, spans, frontiers);
        },
        nb::arg("salt"), nb::arg("mode"), nb::arg("rope_delta"), nb::arg("tokens").noconvert(), nb::arg("spans"),
        nb::arg("frontiers"),
        "The chained digests of docs/formats/prefix_digest.md at ascending frontiers, 16 bytes each. A span is (begin, "
        "type, positions, steps, media), media (digest low, digest high, offset) or None; without spans all is text.");
}

}  // namespace ninfer::bindings
