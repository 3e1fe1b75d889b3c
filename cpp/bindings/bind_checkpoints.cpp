#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/result_to_python.h"
#include "cpp/bindings/tier_named.h"
#include "cpp/program/prepared_prompt.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

CheckpointKind kind_named(const std::string& name) {
    for (std::int64_t i = 0; i < kCheckpointKinds; ++i)
        if (const auto kind = static_cast<CheckpointKind>(i); to_string(kind) == name) return kind;
    throw nb::value_error("no such kind of checkpoint");
}

std::vector<std::uint64_t> values(std::span<const CheckpointHandle> handles) {
    std::vector<std::uint64_t> values;
    for (const CheckpointHandle handle : handles) values.push_back(handle.value);
    return values;
}

std::variant<std::vector<std::int64_t>, Refusal> verify(Program& program, const PreparedPrompt& prompt,
                                                        const std::vector<std::uint64_t>& checkpoints) {
    std::vector<CheckpointHandle> handles;
    for (const std::uint64_t value : checkpoints) handles.push_back({value});
    std::vector<Verification> verifications(handles.size());
    const auto verified = [&] {
        const nb::gil_scoped_release release;
        return program.verify(prompt.view(), handles, verifications);
    }();
    if (!verified) return verified.error();
    std::vector<std::int64_t> matched;
    for (const Verification& verification : verifications) matched.push_back(verification.matched);
    return matched;
}

void bind_copy_values(nb::module_& module) {
    nb::class_<CopyProgress>(module, "CopyProgress", "Copies of pages and state images after a poll.")
        .def_ro("open", &CopyProgress::open)
        .def_ro("published", &CopyProgress::published, "By this poll.")
        .def_ro("failed", &CopyProgress::failed,
                "By this poll. Tails start again; a sequence whose image failed can only be closed.")
        .def_ro("draining", &CopyProgress::draining, "Cancelled ones that still hold memory.")
        .def_prop_ro(
            "removed", [](const CopyProgress& progress) { return values(progress.removed); },
            "Checkpoints that went because their image could not be copied.");
    nb::class_<CaptureShape>(module, "CaptureShape", "What a capture does with pages.")
        .def_ro("shared", &CaptureShape::shared)
        .def_ro("frozen_in_place", &CaptureShape::frozen_in_place)
        .def_ro("copies", &CaptureShape::copies);
}

void bind_captures(nb::class_<Program>& program) {
    program.def(
        "capture",
        [](Program& self, std::uint64_t sequence, const std::string& kind, const std::string& tier, bool own) {
            const CaptureRequest request{kind_named(kind), tier_named(tier), own};
            const nb::gil_scoped_release release;
            return to_python<std::uint64_t>(self.capture(SequenceHandle{sequence}, request));
        },
        nb::arg("sequence"), nb::arg("kind") = "long_anchor", nb::arg("tier") = "device", nb::arg("own") = true,
        "A checkpoint at the computed frontier, in the sequence's owner or in a shared one of its own; tier is where "
        "its state image goes. The sequence waits for the copies that this needs.");
    program.def(
        "capture_shape",
        [](const Program& self, std::uint64_t sequence) {
            return to_python<CaptureShape>(self.capture_shape(SequenceHandle{sequence}));
        },
        nb::arg("sequence"), "What capture would do with the pages now.");
    program.def(
        "finish",
        [](Program& self, std::uint64_t sequence, const std::string& kind, const std::string& tier) {
            const FinishRequest request{kind_named(kind), tier_named(tier)};
            const nb::gil_scoped_release release;
            return to_python<std::uint64_t>(self.finish(SequenceHandle{sequence}, request));
        },
        nb::arg("sequence"), nb::arg("kind") = "session_endpoint", nb::arg("tier") = "device",
        "Ends the sequence and keeps it as a checkpoint at its computed frontier; returns the owner.");
    program.def(
        "owner",
        [](const Program& self, std::uint64_t owner) {
            return to_python<OwnerSummary>(self.owner(OwnerHandle{owner}));
        },
        nb::arg("owner"));
    program.def(
        "checkpoint",
        [](const Program& self, std::uint64_t checkpoint) {
            return to_python<CheckpointSummary>(self.checkpoint(CheckpointHandle{checkpoint}));
        },
        nb::arg("checkpoint"));
}

void bind_placement(nb::class_<Program>& program) {
    program.def(
        "start_copy",
        [](Program& self, std::uint64_t checkpoint, const std::string& tier) {
            const Tier destination = tier_named(tier);
            const nb::gil_scoped_release release;
            return to_python<std::int64_t>(self.start_copy(CheckpointHandle{checkpoint}, destination));
        },
        nb::arg("checkpoint"), nb::arg("tier"),
        "Starts copying everything that is not on the tier yet, all or nothing; returns the bytes that will move.");
    program.def(
        "poll_copies",
        [](Program& self, std::optional<std::int64_t> max_bytes) {
            require(max_bytes.value_or(0) >= 0, "max_bytes must be at least 0");
            const auto budget = max_bytes ? static_cast<std::size_t>(*max_bytes) : CopyEngine::kDecodingBudgetBytes;
            const nb::gil_scoped_release release;
            return self.poll_copies(budget);
        },
        nb::arg("max_bytes") = nb::none(), "Moves at most max_bytes (8 MiB) and publishes what has arrived.");
    program.def(
        "cancel_copies",
        [](Program& self, std::uint64_t checkpoint) {
            const nb::gil_scoped_release release;
            return to_python<std::int64_t>(self.cancel_copies(CheckpointHandle{checkpoint}));
        },
        nb::arg("checkpoint"), "Takes back its open copies; returns how many. What was published stays.");
    program.def(
        "drop",
        [](Program& self, std::uint64_t checkpoint, const std::string& tier) {
            const Tier from = tier_named(tier);
            const nb::gil_scoped_release release;
            return to_python<std::int64_t>(self.drop(CheckpointHandle{checkpoint}, from));
        },
        nb::arg("checkpoint"), nb::arg("tier"),
        "Drops what it has on the tier and can go; never a last replica, nor pages on Device that a sequence reads. "
        "Returns how many pages and images that were.");
    program.def(
        "delete_checkpoint",
        [](Program& self, std::uint64_t checkpoint) {
            const nb::gil_scoped_release release;
            return to_python<std::monostate>(self.delete_checkpoint(CheckpointHandle{checkpoint}));
        },
        nb::arg("checkpoint"));
    program.def(
        "release_owner",
        [](Program& self, std::uint64_t owner) {
            const nb::gil_scoped_release release;
            return to_python<std::monostate>(self.release_owner(OwnerHandle{owner}));
        },
        nb::arg("owner"), "Deletes the owner with all its checkpoints.");
}

}  // namespace

void bind_checkpoint_values(nb::module_& module) {
    bind_copy_values(module);
    nb::class_<OwnerSummary>(module, "OwnerSummary", "Checkpoints of one lineage.")
        .def_prop_ro(
            "role", [](const OwnerSummary& owner) { return std::string(to_string(owner.role)); },
            "'active', 'private' or 'shared'.")
        .def_prop_ro(
            "checkpoints", [](const OwnerSummary& owner) { return values(owner.checkpoints); },
            "Handles, by ascending frontier.");
    nb::class_<CheckpointSummary>(module, "CheckpointSummary", "Where a checkpoint's bytes lie at one moment.")
        .def_prop_ro("kind", [](const CheckpointSummary& summary) { return std::string(to_string(summary.kind)); })
        .def_prop_ro("owner", [](const CheckpointSummary& summary) { return summary.owner.value; })
        .def_ro("frontier", &CheckpointSummary::frontier, "Tokens.")
        .def_ro("pages", &CheckpointSummary::pages)
        .def_ro("pages_on_device", &CheckpointSummary::pages_on_device)
        .def_ro("pages_on_host", &CheckpointSummary::pages_on_host)
        .def_ro("pages_exclusive", &CheckpointSummary::pages_exclusive, "That nobody else sees.")
        .def_ro("has_image", &CheckpointSummary::has_image)
        .def_ro("image_on_device", &CheckpointSummary::image_on_device)
        .def_ro("image_on_host", &CheckpointSummary::image_on_host)
        .def_ro("open_copies", &CheckpointSummary::open_copies)
        .def_ro("valid", &CheckpointSummary::valid, "False while its image is still to come.")
        .def_ro("device_ready", &CheckpointSummary::device_ready);
}

void bind_checkpoints(nb::class_<Program>& program) {
    bind_captures(program);
    bind_placement(program);
    program.def("verify", &verify, nb::arg("prompt"), nb::arg("checkpoints"),
                "How many tokens of the prompt each checkpoint's ledger begins with, compared exactly.");
    program.def_prop_ro("resource_revision", &Program::resource_revision);
    program.def("check_invariants", &Program::check_invariants, "Stops the process if anything does not add up.");
    program.def("fingerprint", &Program::fingerprint,
                "A digest over all bookkeeping: equal means nothing has changed.");
}

}  // namespace ninfer::bindings
