#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <variant>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/model_source.h"
#include "cpp/bindings/sampler.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using TokenArray = nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using LogitArray = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// What a call of the core gives to Python: its value, or the Refusal as a value.
template <typename Out, typename T>
std::variant<Out, Refusal> to_python(const Result<T, Refusal>& result) {
    if (!result) return result.error();
    if constexpr (std::is_same_v<T, Nothing>)
        return Out{};
    else if constexpr (std::is_same_v<T, SequenceHandle>)
        return result.value().value;
    else
        return result.value();
}

RowRequest row_request(std::uint64_t handle, const Sampler& sampler) { return {{handle}, sampler.view()}; }

std::variant<PendingBatch, Refusal> decode(Program& program,
                                           const std::vector<std::pair<std::uint64_t, const Sampler*>>& rows) {
    std::array<RowRequest, Decoder::kMaxSequences> requests;
    const auto count = static_cast<std::int64_t>(rows.size());
    if (count > Decoder::kMaxSequences) return Refusal{RefusalKind::kBatchSize, count, Decoder::kMaxSequences};
    for (std::size_t i = 0; i < rows.size(); ++i) requests[i] = row_request(rows[i].first, *rows[i].second);
    const nb::gil_scoped_release release;
    return to_python<PendingBatch>(program.decode(std::span(requests).first(rows.size())));
}

// The token counts of a sequence at one moment.
struct SequenceSummary {
    std::int64_t tokens;
    std::int64_t computed;
    std::int64_t reserved;
    std::int64_t prompt_tokens_computed;
};

void bind_summaries(nb::module_& module) {
    nb::class_<SequenceSummary>(module, "SequenceSummary", "Token counts of a sequence at one moment.")
        .def_ro("tokens", &SequenceSummary::tokens)
        .def_ro("computed", &SequenceSummary::computed)
        .def_ro("reserved", &SequenceSummary::reserved)
        .def_ro("prompt_tokens_computed", &SequenceSummary::prompt_tokens_computed);
    nb::class_<ProgramStatistics>(module, "ProgramStatistics", "What a program holds at one moment.")
        .def_ro("pages_total", &ProgramStatistics::pages_total)
        .def_ro("pages_free", &ProgramStatistics::pages_free)
        .def_ro("lanes_total", &ProgramStatistics::lanes_total)
        .def_ro("lanes_open", &ProgramStatistics::lanes_open)
        .def_ro("state_image_bytes", &ProgramStatistics::state_image_bytes)
        .def_ro("page_bytes", &ProgramStatistics::page_bytes)
        .def_ro("weight_bytes", &ProgramStatistics::weight_bytes)
        .def_ro("scratch_peak_bytes", &ProgramStatistics::scratch_peak_bytes)
        .def_ro("tokens_computed", &ProgramStatistics::tokens_computed);
}

void bind_units(nb::class_<Program>& program) {
    program.def(
        "prefill",
        [](Program& self, std::uint64_t handle, std::int64_t limit) {
            const nb::gil_scoped_release release;
            return to_python<std::int64_t>(self.prefill({handle}, limit));
        },
        nb::arg("sequence"), nb::arg("limit"),
        "Computes at most `limit` uncomputed tokens, leaving the last; returns how many. Commits directly.");
    program.def(
        "finish_prefill",
        [](Program& self, std::uint64_t handle, const Sampler& sampler) {
            const RowRequest request = row_request(handle, sampler);
            const nb::gil_scoped_release release;
            return to_python<PendingBatch>(self.finish_prefill(request));
        },
        nb::arg("sequence"), nb::arg("sampler"),
        "Computes all uncomputed tokens and samples the next one into a pending batch of one row.");
    program.def("decode", &decode, nb::arg("rows"),
                "One round over 1..8 pairs of sequence and sampler, each with exactly one uncomputed token.");
    program.def(
        "prefill_logits",
        [](Program& self, std::uint64_t handle, const LogitArray& logits) {
            const nb::gil_scoped_release release;
            return to_python<std::int64_t>(self.prefill_logits({handle}, static_cast<std::int64_t>(logits.shape(0)),
                                                               {logits.data(), logits.size()}));
        },
        nb::arg("sequence"), nb::arg("logits").noconvert(),
        "Computes at most len(logits) tokens into logits, f32 [n, vocab_size]; returns how many rows were written.");
    program.def(
        "commit",
        [](Program& self, const PendingBatch& batch, const std::vector<std::int32_t>& accepted) {
            return to_python<std::monostate>(self.commit(batch.id, accepted));
        },
        nb::arg("batch"), nb::arg("accepted"), "Ends the pending batch: accepted[i] in {0, 1} per row.");
    program.def(
        "abort",
        [](Program& self, const PendingBatch& batch) { return to_python<std::monostate>(self.abort(batch.id)); },
        nb::arg("batch"), "Ends the pending batch without its tokens.");
}

}  // namespace

void bind_program(nb::module_& module) {
    bind_summaries(module);
    nb::class_<PendingBatch>(module, "PendingBatch", "A computed unit that waits for exactly one commit or abort.")
        .def_prop_ro("tokens", [](const PendingBatch& batch) {
            return std::vector<SampledToken>(batch.sampled.begin(), batch.sampled.begin() + batch.rows);
        });

    nb::class_<ProgramOptions>(module, "ProgramOptions", "Sizes of a program; all fields must be set.")
        .def(nb::init<>())
        .def_prop_rw(
            "cpu_isa", [](const ProgramOptions& options) { return std::string(to_string(options.isa)); },
            [](ProgramOptions& options, const std::string& name) { options.isa = instruction_set(name); })
        .def_rw("threads", &ProgramOptions::threads)
        .def_rw("kv_pages", &ProgramOptions::kv_pages)
        .def_rw("max_context", &ProgramOptions::max_context)
        .def_rw("max_concurrency", &ProgramOptions::max_concurrency)
        .def_rw("max_unit_rows", &ProgramOptions::max_unit_rows)
        .def_rw("valid_tokens", &ProgramOptions::valid_tokens);

    nb::class_<Program> program(
        module, "Program",
        "Sequences and model units of one loaded model. One thread at a time. Every call returns its "
        "value or a Refusal that changed nothing.");
    program.def(
        "__init__",
        [](Program* self, const ModelSource& model, const std::string& kv_dtype, const ProgramOptions& options) {
            new (self) Program(model.spec, model.store, kv_storage(kv_dtype), options);
        },
        nb::arg("model"), nb::arg("kv_dtype"), nb::arg("options"));
    program.def(
        "open_sequence",
        [](Program& self, std::int64_t tokens, bool count_tokens) {
            return to_python<std::uint64_t>(self.open_sequence(tokens, count_tokens));
        },
        nb::arg("tokens"), nb::arg("count_tokens") = false,
        "Reserves everything for `tokens` tokens, prompt and output; count_tokens is needed for penalties.");
    program.def(
        "close_sequence",
        [](Program& self, std::uint64_t handle) { return to_python<std::monostate>(self.close_sequence({handle})); },
        nb::arg("sequence"));
    program.def(
        "append",
        [](Program& self, std::uint64_t handle, const TokenArray& tokens) {
            return to_python<std::monostate>(self.append({handle}, {tokens.data(), tokens.size()}));
        },
        nb::arg("sequence"), nb::arg("tokens"), "Appends prompt or forced tokens, int32 [n], to the ledger.");
    bind_units(program);
    program.def(
        "sequence",
        [](const Program& self, std::uint64_t handle) -> std::variant<SequenceSummary, Refusal> {
            const auto found = self.find({handle});
            if (!found) return found.error();
            const Sequence& sequence = *found.value();
            return SequenceSummary{std::ssize(sequence.tokens), sequence.computed, sequence.reserved,
                                   sequence.prompt_tokens_computed};
        },
        nb::arg("sequence"), "Token counts of a sequence.");
    program.def("statistics", &Program::statistics);
    program.def_prop_ro("vocab_size", [](const Program& self) { return self.decoder().spec().vocab_size; });
    program.def_prop_ro("cpu_isa", [](const Program& self) { return std::string(to_string(self.instruction_set())); });
}

}  // namespace ninfer::bindings
