#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <memory>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/result_to_python.h"
#include "cpp/bindings/token_spans.h"
#include "cpp/program/prepared_prompt.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using TokenArray = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using FrontierArray = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using DigestArray = nb::ndarray<const std::uint64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using DigestRows = nb::ndarray<nb::numpy, std::uint64_t, nb::shape<-1, 2>>;
using MatchArray = nb::ndarray<nb::numpy, bool, nb::ndim<1>>;

static_assert(sizeof(Digest128) == 2 * sizeof(std::uint64_t), "a digest is a row of two numbers, low and high");

std::span<const std::int64_t> span_of(const FrontierArray& frontiers) { return {frontiers.data(), frontiers.size()}; }

// An array that owns `count` elements, and the memory to write them to.
template <typename Array, typename Element>
std::pair<Array, Element*> new_array(std::initializer_list<std::size_t> shape, std::size_t count) {
    auto memory = std::make_unique<Element[]>(count);
    Element* const data = memory.get();
    nb::capsule owner(data, [](void* pointer) noexcept { delete[] static_cast<Element*>(pointer); });
    memory.release();
    return {Array(data, shape, owner), data};
}

void prepare(PreparedPrompt* self, const TokenArray& tokens, std::string salt, std::string mode,
             std::int64_t rope_delta, const std::vector<SpanRow>& rows) {
    require(tokens.size() > 0, "the prompt is empty");
    auto spans = token_spans(rows, 0, static_cast<std::int64_t>(tokens.size()));
    const nb::gil_scoped_release release;
    new (self) PreparedPrompt({std::move(salt), std::move(mode), rope_delta},
                              {tokens.data(), tokens.data() + tokens.size()}, std::move(spans));
}

DigestRows digests(const PreparedPrompt& prompt, const FrontierArray& frontiers) {
    const std::size_t count = frontiers.size();
    for (const std::int64_t frontier : span_of(frontiers))
        require(frontier >= 0 && frontier <= prompt.size(), "a frontier is not in the prompt");
    auto [rows, numbers] = new_array<DigestRows, std::uint64_t>({count, 2}, 2 * count);
    for (std::size_t i = 0; i < count; ++i) {
        const Digest128 digest = prompt.digest_at(frontiers.data()[i]);
        std::memcpy(numbers + 2 * i, &digest, sizeof(digest));
    }
    return rows;
}

MatchArray matches(const PreparedPrompt& prompt, const FrontierArray& frontiers, const DigestArray& digests) {
    const std::size_t count = frontiers.size();
    require(digests.shape(0) == count, "as many digests as frontiers");
    auto [out, flags] = new_array<MatchArray, bool>({count}, count);
    std::vector<Digest128> wanted;
    for (std::size_t i = 0; i < count; ++i) wanted.push_back({digests.data()[2 * i], digests.data()[2 * i + 1]});
    const nb::gil_scoped_release release;
    prompt.match(span_of(frontiers), wanted, {flags, count});
    return out;
}

std::variant<DigestRows, Refusal> checkpoint_digests(const Program& program, std::uint64_t checkpoint,
                                                     const FrontierArray& frontiers) {
    const std::size_t count = frontiers.size();
    auto [rows, numbers] = new_array<DigestRows, std::uint64_t>({count, 2}, 2 * count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto digest = program.digest_at(CheckpointHandle{checkpoint}, frontiers.data()[i]);
        if (!digest) return digest.error();
        std::memcpy(numbers + 2 * i, &digest.value(), sizeof(Digest128));
    }
    return rows;
}

}  // namespace

void bind_prompt_values(nb::module_& module) {
    nb::class_<PreparedPrompt>(
        module, "PreparedPrompt",
        "A prompt with everything that identifies it and the digests of its prefixes (docs/formats/"
        "prefix_digest.md). Immutable; any thread may make one, which hashes all tokens, and read it.")
        .def("__init__", &prepare, nb::arg("tokens").noconvert(), nb::arg("salt") = "", nb::arg("mode") = "",
             nb::arg("rope_delta") = 0, nb::arg("spans") = nb::list(),
             "tokens: int32 [n], at least one. spans as of prefix_digests; without any, all is text.")
        .def_prop_ro("size", &PreparedPrompt::size, "Tokens.")
        .def_prop_ro("salt", [](const PreparedPrompt& prompt) { return prompt.header().salt; })
        .def_prop_ro("mode", [](const PreparedPrompt& prompt) { return prompt.header().mode; })
        .def_prop_ro(
            "tokens",
            [](const PreparedPrompt& prompt) {
                const auto tokens = prompt.tokens();
                return nb::ndarray<nb::numpy, const std::int32_t, nb::ndim<1>>(tokens.data(), {tokens.size()},
                                                                               nb::handle());
            },
            nb::rv_policy::reference_internal, "int32 [n], read-only.")
        .def("digests", &digests, nb::arg("frontiers").noconvert(),
             "The digests at these frontiers, int64 [n], in any order: uint64 [n, 2], low and high half.")
        .def("matches", &matches, nb::arg("frontiers").noconvert(), nb::arg("digests").noconvert(),
             "For each frontier, int64 [n], whether the prompt is that long and has this digest, uint64 [n, 2], there: "
             "bool [n].");
}

void bind_prompts(nb::class_<Program>& program) {
    program.def(
        "append_prompt",
        [](Program& self, std::uint64_t sequence, const PreparedPrompt& prompt) {
            const nb::gil_scoped_release release;
            return to_python<std::monostate>(self.append_prompt(SequenceHandle{sequence}, prompt));
        },
        nb::arg("sequence"), nb::arg("prompt"),
        "Appends the tokens of the prompt that the sequence does not have yet; it has the others because the prompt "
        "was compared with the checkpoint from which it was opened. `not_text` for what no model computes yet: other "
        "types, media, positions that are not the tokens' indices.");
    program.def(
        "checkpoint_digests", &checkpoint_digests, nb::arg("checkpoint"), nb::arg("frontiers").noconvert(),
        "The digests of a checkpoint's first tokens at these frontiers, int64 [n], 0 to its own: uint64 [n, 2].");
}

}  // namespace ninfer::bindings
