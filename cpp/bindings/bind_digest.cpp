#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <string>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/token_spans.h"
#include "cpp/program/prefix_digest.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using TokenArray = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
nb::bytes bytes_of(const Digest128& digest) { return nb::bytes(&digest, sizeof(digest)); }

void require_frontiers(const std::vector<std::int64_t>& frontiers, std::int64_t tokens) {
    if (!std::is_sorted(frontiers.begin(), frontiers.end())) throw nb::value_error("frontiers must ascend");
    if (!frontiers.empty() && (frontiers.front() < 0 || frontiers.back() > tokens))
        throw nb::value_error("a frontier is not in the prompt");
}

std::vector<nb::bytes> digests_of(const IdentityHeader& header, const TokenArray& tokens,
                                  const std::vector<SpanRow>& rows, const std::vector<std::int64_t>& frontiers) {
    const auto spans = token_spans(rows, 0, static_cast<std::int64_t>(tokens.size()));
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
