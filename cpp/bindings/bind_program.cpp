#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <variant>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/model_source.h"
#include "cpp/bindings/result_to_python.h"
#include "cpp/bindings/sampler.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using LogitArray = nb::ndarray<float, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The ranges that cpp/ops/sampling.h asserts, checked where a Python caller can still be told.
RowRequest row_request(const Program& program, std::uint64_t handle, const Sampler* sampler) {
    require(sampler != nullptr, "a row needs a Sampler, not None");
    const SamplerInput& input = sampler->input;
    require(std::isfinite(input.temperature) && input.temperature >= 0.0F, "temperature must be finite and at least 0");
    require(input.min_p <= 1.0F, "min_p must be at most 1");
    require(std::isfinite(input.presence_penalty) && std::isfinite(input.frequency_penalty),
            "penalties must be finite");
    require(std::isfinite(input.repetition_penalty) && input.repetition_penalty > 0.0F,
            "repetition_penalty must be finite and above 0");
    require(input.logprobs >= -1 && input.logprobs <= kMaxLogprobs, "logprobs must be -1 to 20");
    const auto mask_words = static_cast<std::size_t>((program.decoder().spec().vocab_size + 31) / 32);
    require(sampler->mask.empty() || sampler->mask.size() == mask_words,
            "the mask must hold one word per 32 ids of the vocabulary");
    for (const auto& bias : sampler->bias)
        require(bias.id >= 0 && bias.id < program.valid_tokens(), "a biased id is no token of the vocabulary");
    const auto found = program.find({handle});
    const bool counts = found.has_value() && !found.value()->output_counts.empty();
    const bool penalties =
        input.presence_penalty != 0.0F || input.frequency_penalty != 0.0F || input.repetition_penalty != 1.0F;
    require(!found.has_value() || counts || !penalties, "penalties need a sequence opened with count_tokens=True");
    return {{handle}, sampler->view()};
}

std::variant<PendingBatch, Refusal> decode(Program& program,
                                           const std::vector<std::pair<std::uint64_t, const Sampler*>>& rows) {
    std::array<RowRequest, Decoder::kMaxSequences> requests;
    const auto count = static_cast<std::int64_t>(rows.size());
    if (count > Decoder::kMaxSequences) return Refusal{RefusalKind::kBatchSize, count, Decoder::kMaxSequences};
    for (std::size_t i = 0; i < rows.size(); ++i) requests[i] = row_request(program, rows[i].first, rows[i].second);
    const nb::gil_scoped_release release;
    return to_python<PendingBatch>(program.decode(std::span(requests).first(rows.size())));
}

void bind_values(nb::module_& module) {
    nb::class_<PendingBatch>(module, "PendingBatch", "A computed unit that waits for exactly one commit or abort.")
        .def_prop_ro("tokens", [](const PendingBatch& batch) {
            return std::vector<SampledToken>(batch.sampled.begin(), batch.sampled.begin() + batch.rows);
        });

    nb::class_<ProgramOptions>(
        module, "ProgramOptions",
        "Sizes of a program; checkpoint_slots and host_bytes may stay 0, all others must be set.")
        .def(nb::init<>())
        .def_prop_rw(
            "cpu_isa", [](const ProgramOptions& options) { return std::string(to_string(options.isa)); },
            [](ProgramOptions& options, const std::string& name) { options.isa = instruction_set(name); })
        .def_rw("threads", &ProgramOptions::threads)
        .def_rw("kv_pages", &ProgramOptions::kv_pages)
        .def_rw("max_context", &ProgramOptions::max_context)
        .def_rw("max_concurrency", &ProgramOptions::max_concurrency)
        .def_rw("max_unit_rows", &ProgramOptions::max_unit_rows)
        .def_rw("valid_tokens", &ProgramOptions::valid_tokens)
        .def_rw("checkpoint_slots", &ProgramOptions::checkpoint_slots)
        .def_rw("host_bytes", &ProgramOptions::host_bytes);
}

void require_possible(const ProgramOptions& options, const DecoderSpec& spec) {
    require(options.threads >= 1, "threads must be at least 1");
    require(options.max_concurrency >= 1 && options.max_concurrency <= Decoder::kMaxSequences,
            "max_concurrency must be 1 to 8");
    require(options.max_unit_rows >= 1, "max_unit_rows must be at least 1");
    require(options.max_context >= 0, "max_context must be at least 0");
    require(options.kv_pages >= 0 && options.kv_pages <= INT32_MAX, "kv_pages must be 0 to 2^31 - 1");
    require(options.checkpoint_slots >= 0 && options.checkpoint_slots <= INT32_MAX,
            "checkpoint_slots must be 0 to 2^31 - 1");
    require(options.host_bytes >= 0, "host_bytes must be at least 0");
    require(options.valid_tokens >= 1 && options.valid_tokens <= spec.vocab_size,
            "valid_tokens must be 1 to the vocabulary size");
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
            const RowRequest request = row_request(self, handle, &sampler);
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
            require(static_cast<std::int64_t>(logits.shape(1)) == self.decoder().spec().vocab_size,
                    "logits must have one column per id of the vocabulary");
            const nb::gil_scoped_release release;
            return to_python<std::int64_t>(self.prefill_logits({handle}, static_cast<std::int64_t>(logits.shape(0)),
                                                               {logits.data(), logits.size()}));
        },
        nb::arg("sequence"), nb::arg("logits").noconvert(),
        "Computes at most len(logits) tokens into logits, f32 [n, vocab_size]; returns how many rows were written.");
    program.def(
        "commit",
        [](Program& self, const PendingBatch& batch, const std::vector<std::int32_t>& accepted) {
            return to_python<std::monostate>(self.commit(batch, accepted));
        },
        nb::arg("batch"), nb::arg("accepted"), "Ends the pending batch: accepted[i] in {0, 1} per row.");
    program.def(
        "abort", [](Program& self, const PendingBatch& batch) { return to_python<std::monostate>(self.abort(batch)); },
        nb::arg("batch"), "Ends the pending batch without its tokens.");
    program.def(
        "abort_pending", &Program::abort_pending,
        "Ends whatever batch is pending, for a caller that was interrupted and has lost it; whether there was one.");
    program.def(
        "last_logits",
        [](const Program& self, std::int64_t row) {
            require(row >= 0 && row < self.lanes(), "no such row");
            const auto logits = self.last_logits(row);
            return std::vector<float>(logits.begin(), logits.end());
        },
        nb::arg("row"), "A copy of one row of the last sampled unit's logits.");
}

}  // namespace

void bind_program(nb::module_& module) {
    bind_values(module);
    bind_prompt_values(module);
    bind_sequence_values(module);
    bind_checkpoint_values(module);
    bind_statistics_values(module);
    bind_planning_values(module);
    bind_transition_values(module);
    nb::class_<Program> program(
        module, "Program",
        "Sequences and model units of one loaded model. One thread at a time. Every call returns its "
        "value or a Refusal that changed nothing.");
    program.def(
        "__init__",
        [](Program* self, const ModelSource& model, const std::string& kv_dtype, const ProgramOptions& options) {
            require_possible(options, model.spec);
            new (self) Program(model.spec, model.store, kv_storage(kv_dtype), options);
        },
        nb::arg("model"), nb::arg("kv_dtype"), nb::arg("options"));
    bind_sequences(program);
    bind_prompts(program);
    bind_units(program);
    bind_checkpoints(program);
    bind_statistics(program);
    bind_candidates(program);
    bind_transitions(program);
    bind_planning_sessions(module);
    program.def_prop_ro("vocab_size", [](const Program& self) { return self.decoder().spec().vocab_size; });
    program.def_prop_ro("valid_tokens", &Program::valid_tokens);
    program.def_prop_ro("cpu_isa", [](const Program& self) { return std::string(to_string(self.instruction_set())); });
}

}  // namespace ninfer::bindings
