#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/result_to_python.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using TokenArray = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A sequence at one moment.
struct SequenceSummary {
    std::int64_t tokens;
    std::int64_t computed;
    std::int64_t reserved;
    std::int64_t prompt_tokens_computed;
    std::uint64_t owner;
    std::int64_t waits;
};

std::variant<SequenceSummary, Refusal> sequence(const Program& program, std::uint64_t handle) {
    const auto found = program.find(SequenceHandle{handle});
    if (!found) return found.error();
    const Sequence& sequence = *found.value();
    return SequenceSummary{sequence.length,      sequence.computed,
                           sequence.reserved,    sequence.prompt_tokens_computed,
                           sequence.owner.value, std::int64_t{sequence.waits} + sequence.snapshots};
}

SequenceRequest sequence_request(std::int64_t tokens, bool count_tokens, std::int64_t captures, std::string salt,
                                 std::string mode, std::int64_t rope_delta) {
    require(tokens >= 0, "tokens must be at least 0");
    require(captures >= 0 && captures <= INT32_MAX, "captures must be 0 to 2^31 - 1");
    return {tokens, count_tokens, captures, {std::move(salt), std::move(mode), rope_delta}};
}

void bind_opening(nb::class_<Program>& program) {
    program.def(
        "open_sequence",
        [](Program& self, std::int64_t tokens, bool count_tokens, std::int64_t captures, std::string salt,
           std::string mode, std::int64_t rope_delta) {
            const auto request =
                sequence_request(tokens, count_tokens, captures, std::move(salt), std::move(mode), rope_delta);
            const nb::gil_scoped_release release;
            return to_python<std::uint64_t>(self.open_sequence(request));
        },
        nb::arg("tokens"), nb::arg("count_tokens") = false, nb::arg("captures") = 0, nb::arg("salt") = "",
        nb::arg("mode") = "", nb::arg("rope_delta") = 0,
        "Reserves everything for `tokens` tokens, prompt and output; count_tokens is needed for penalties; captures is "
        "how many captures may fall inside a page.");
    program.def(
        "open_from",
        [](Program& self, std::uint64_t checkpoint, std::int64_t tokens, bool count_tokens, std::int64_t captures,
           bool consume, std::optional<std::int64_t> frontier, std::string salt, std::string mode,
           std::int64_t rope_delta) {
            require(frontier.value_or(0) >= 0, "frontier must be at least 0");
            const SequenceSource source{{checkpoint}, consume ? SourceUse::kConsume : SourceUse::kRetain, frontier};
            const auto request =
                sequence_request(tokens, count_tokens, captures, std::move(salt), std::move(mode), rope_delta);
            const nb::gil_scoped_release release;
            return to_python<std::uint64_t>(self.open_from(source, request));
        },
        nb::arg("checkpoint"), nb::arg("tokens"), nb::arg("count_tokens") = false, nb::arg("captures") = 0,
        nb::arg("consume") = false, nb::arg("frontier") = nb::none(), nb::arg("salt") = "", nb::arg("mode") = "",
        nb::arg("rope_delta") = 0,
        "A sequence that has computed the checkpoint's tokens, with room for `tokens` in all. Units refuse with "
        "`unsettled` until poll_copies has copied a partial page. consume: the checkpoint's owner becomes the "
        "sequence's; its state image must be on Device.");
}

}  // namespace

void bind_sequence_values(nb::module_& module) {
    nb::class_<SequenceSummary>(module, "SequenceSummary", "A sequence at one moment; counts are tokens.")
        .def_ro("tokens", &SequenceSummary::tokens)
        .def_ro("computed", &SequenceSummary::computed)
        .def_ro("reserved", &SequenceSummary::reserved)
        .def_ro("prompt_tokens_computed", &SequenceSummary::prompt_tokens_computed)
        .def_ro("owner", &SequenceSummary::owner, "Handle of the owner of its captures.")
        .def_ro("waits", &SequenceSummary::waits, "Open copies without which no unit may run.");
}

void bind_sequences(nb::class_<Program>& program) {
    bind_opening(program);
    program.def(
        "close_sequence",
        [](Program& self, std::uint64_t handle) {
            const nb::gil_scoped_release release;
            return to_python<std::monostate>(self.close_sequence(SequenceHandle{handle}));
        },
        nb::arg("sequence"), "Discards the sequence with its own captures.");
    program.def(
        "record_rewrite_frontier",
        [](Program& self, std::uint64_t handle, std::int64_t frontier) {
            require(frontier >= 0, "frontier must be at least 0");
            return to_python<std::monostate>(self.record_rewrite_frontier(SequenceHandle{handle}, frontier));
        },
        nb::arg("sequence"), nb::arg("frontier"),
        "Notes in the ledger that execution was split at this token; checkpoints inherit it.");
    program.def(
        "append",
        [](Program& self, std::uint64_t handle, const TokenArray& tokens, bool forced_output) {
            const auto origin = forced_output ? TokenOrigin::kOutput : TokenOrigin::kPrompt;
            return to_python<std::monostate>(
                self.append(SequenceHandle{handle}, {tokens.data(), tokens.size()}, origin));
        },
        nb::arg("sequence"), nb::arg("tokens").noconvert(), nb::arg("forced_output") = false,
        "Appends prompt tokens, or output that is forced instead of sampled, int32 [n], to the ledger.");
    program.def("sequence", &sequence, nb::arg("sequence"), "What a sequence has at this moment.");
}

}  // namespace ninfer::bindings
