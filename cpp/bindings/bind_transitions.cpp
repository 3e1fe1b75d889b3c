#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <tuple>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/owner_handles.h"
#include "cpp/bindings/plan_value.h"
#include "cpp/bindings/result_to_python.h"
#include "cpp/program/backfill_proof.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using Ended = std::optional<ResourceResult>;
// checkpoint, pages, pages on Device, pages on Host, image on Device, image on Host
using PlacementRow = std::tuple<std::uint64_t, std::int64_t, std::int64_t, std::int64_t, bool, bool>;
// before, after, frontier
using ShortenedRow = std::tuple<std::uint64_t, std::uint64_t, std::int64_t>;

template <typename Tag>
std::vector<std::uint64_t> values(const std::vector<Handle<Tag>>& handles) {
    std::vector<std::uint64_t> values;
    for (const Handle<Tag> handle : handles) values.push_back(handle.value);
    return values;
}

template <typename Tag>
std::optional<std::uint64_t> value_of(Handle<Tag> handle) {
    if (handle == Handle<Tag>{}) return std::nullopt;
    return handle.value;
}

std::vector<PlacementRow> placements(const ResourceResult& result) {
    std::vector<PlacementRow> rows;
    for (const auto& [checkpoint, place] : result.placements)
        rows.emplace_back(checkpoint.value, place.pages, place.pages_on_device, place.pages_on_host,
                          place.image_on_device, place.image_on_host);
    return rows;
}

std::vector<ShortenedRow> shortened(const ResourceResult& result) {
    std::vector<ShortenedRow> rows;
    for (const auto& [before, after, frontier] : result.shortened)
        rows.emplace_back(before.value, after.value, frontier);
    return rows;
}

using GrowthPair = std::pair<std::int64_t, std::int64_t>;  // tokens, captures inside pages

SequenceRequest request_of(const GrowthPair& growth) {
    require(growth.first >= 0, "tokens must be at least 0");
    require(growth.second >= 0 && growth.second <= INT32_MAX, "captures must be 0 to 2^31 - 1");
    return {growth.first, false, growth.second, {}};
}

std::variant<BackfillProof, Refusal> prove(Program& program, const GrowthPair& head, const GrowthPair& borrower,
                                           const std::vector<std::uint64_t>& donors,
                                           const std::vector<std::uint64_t>& protected_owners) {
    std::vector<SequenceHandle> sequences;
    for (const std::uint64_t donor : donors) sequences.push_back({donor});
    const std::vector<OwnerHandle> owners = owners_of(protected_owners);
    const BackfillQuestion question{request_of(head), request_of(borrower), sequences, owners};
    const nb::gil_scoped_release release;
    return to_python<BackfillProof>(prove_backfill(program.context(), question));
}

}  // namespace

void bind_transition_values(nb::module_& module) {
    nb::class_<ResourceAxes>(module, "ResourceAxes", "Amounts per axis; reserved device pages count as used.")
        .def_ro("device_pages", &ResourceAxes::device_pages)
        .def_ro("image_slots_active", &ResourceAxes::image_slots_active)
        .def_ro("image_slots_checkpoint", &ResourceAxes::image_slots_checkpoint)
        .def_ro("host_blocks", &ResourceAxes::host_blocks);
    nb::class_<ResourceResult>(module, "ResourceResult",
                               "How a transition has ended: the complete state of what it touched.")
        .def_prop_ro(
            "end", [](const ResourceResult& result) { return std::string(to_string(result.end)); },
            "'committed', 'cancelled' or 'copy_failed'.")
        .def_ro("changed", &ResourceResult::changed, "Whether anything has; the revision has moved by one then.")
        .def_prop_ro(
            "removed", [](const ResourceResult& result) { return values(result.removed); },
            "Exactly the checkpoints that are gone, a consumed source among them; not the shortened ones.")
        .def_prop_ro("shortened", &shortened, "Triples: the old checkpoint, the new one, its frontier.")
        .def_prop_ro(
            "owners_gone", [](const ResourceResult& result) { return values(result.owners_gone); },
            "With their last checkpoint.")
        .def_prop_ro("placements", &placements,
                     "Of the plan's checkpoints that remain: handle, pages, on Device, on Host, image on Device, on "
                     "Host.")
        .def_prop_ro("sequence", [](const ResourceResult& result) { return value_of(result.sequence); })
        .def_prop_ro(
            "captured", [](const ResourceResult& result) { return value_of(result.captured); },
            "None if it was skipped.")
        .def_prop_ro(
            "finished", [](const ResourceResult& result) { return value_of(result.finished); }, "The owner.")
        .def_ro("skipped", &ResourceResult::skipped,
                "Why a committed capture or finish has published nothing; 'backwards' if its sequence has gone on.")
        .def_ro("used", &ResourceResult::used, "Now.")
        .def_ro("peak", &ResourceResult::peak, "The most of each axis at any moment since the start.")
        .def_ro("revision", &ResourceResult::revision);
    nb::class_<BackfillProof>(module, "BackfillProof",
                              "The head fits beside the borrower, as long as the revision stays and no copy begins.")
        .def_ro("revision", &BackfillProof::revision)
        .def_ro("pages_needed", &BackfillProof::pages_needed)
        .def_ro("pages_total", &BackfillProof::pages_total)
        .def_ro("lanes_needed", &BackfillProof::lanes_needed)
        .def(
            "holds", [](const BackfillProof& proof, Program& program) { return proof.holds(program.context()); },
            nb::arg("program"));
}

void bind_transitions(nb::class_<Program>& program) {
    program.def(
        "start_transaction",
        [](Program& self, PlanValue& value, const std::vector<std::uint64_t>& protected_owners) {
            require(value.plan.has_value(), "the plan is used up");
            ContextPlan plan = std::move(*value.plan);
            value.plan.reset();
            const std::vector<OwnerHandle> owners = owners_of(protected_owners);
            const nb::gil_scoped_release release;
            return to_python<Ended>(self.start_transaction(std::move(plan), owners));
        },
        nb::arg("plan"), nb::arg("protected_owners"),
        "Uses the plan up. Refused if it would touch an owner that is protected now. The result if nothing had to be "
        "copied; else None, and nothing has happened yet: see "
        "advance_transaction.");
    program.def(
        "advance_transaction",
        [](Program& self) {
            const nb::gil_scoped_release release;
            return to_python<Ended>(self.advance_transaction());
        },
        "One phase; the result if it ends with this call. After each the caller may cancel it.");
    program.def_prop_ro(
        "transaction_waits", &Program::transaction_waits,
        "Whether the last advance_transaction has found that a copy has to end first: see poll_copies.");
    program.def_prop_ro(
        "transaction_phase",
        [](const Program& self) -> std::optional<std::string> {
            const auto phase = self.transaction_phase();
            if (!phase) return std::nullopt;
            return std::string(to_string(*phase));
        },
        "Of the open transaction: 'host_releases', 'copy_preparation', 'copies_in_flight', 'copy_publication' or "
        "'draining'. None if there is none.");
    program.def("cancel_transaction", &Program::cancel_transaction,
                "Takes effect at the next phase; False if there is none, or it is being aborted.");
    program.def(
        "prove_backfill", &prove, nb::arg("head"), nb::arg("borrower"), nb::arg("donors"), nb::arg("protected_owners"),
        "Whether the head's root plan fits when the donors have finished, with the borrower beside it; head and "
        "borrower are tokens and captures, as Program.open_sequence takes them.");
}

}  // namespace ninfer::bindings
