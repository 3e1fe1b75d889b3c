#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/owner_handles.h"
#include "cpp/bindings/plan_value.h"
#include "cpp/bindings/planning_rows.h"
#include "cpp/bindings/result_to_python.h"
#include "cpp/bindings/tier_named.h"
#include "cpp/program/candidate_verification.h"
#include "cpp/program/prepared_prompt.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

// An enum's value by the names of its to_string, the first `count` of them.
template <typename Enum>
Enum named(const std::string& name, std::int64_t count, const char* message) {
    for (std::int64_t i = 0; i < count; ++i)
        if (to_string(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
    throw nb::value_error(message);
}

// --- candidates and publications ------------------------------------------------------------------------------------

using SourceRow = std::pair<std::uint64_t, std::string>;

std::variant<std::vector<AdmissionCandidate>, Refusal> candidates(Program& program, const PreparedPrompt& prompt,
                                                                  const std::vector<SourceRow>& rows) {
    std::vector<CandidateSource> sources;
    for (const auto& [checkpoint, use] : rows)
        sources.push_back({{checkpoint}, named<SourceUse>(use, kSourceUses, "no such use of a source")});
    const nb::gil_scoped_release release;
    return to_python<std::vector<AdmissionCandidate>>(verify_candidates(program.context(), prompt.view(), sources));
}

Publication admission(const AdmissionCandidate& candidate, const PreparedPrompt& prompt, std::int64_t tokens,
                      bool count_tokens, std::int64_t captures) {
    require(candidate.prompt_tokens == prompt.size(), "the candidate was compared with another prompt");
    require(tokens >= 0, "tokens must be at least 0");
    require(captures >= 0 && captures <= INT32_MAX, "captures must be 0 to 2^31 - 1");
    return AdmissionPublication{candidate, {tokens, count_tokens, captures, prompt.header()}};
}

Publication capture_of(std::uint64_t sequence, const std::string& kind, const std::string& tier, bool own) {
    const auto checkpoint_kind = named<CheckpointKind>(kind, kCheckpointKinds, "no such kind of checkpoint");
    return CapturePublication{{sequence}, {checkpoint_kind, tier_named(tier), own}};
}

Publication finish_of(std::uint64_t sequence, const std::string& kind, const std::string& tier) {
    const auto checkpoint_kind = named<CheckpointKind>(kind, kCheckpointKinds, "no such kind of checkpoint");
    return FinishPublication{{sequence}, {checkpoint_kind, tier_named(tier)}};
}

// nanobind would take a variant apart.
struct PublicationValue {
    Publication publication;
};

void bind_publications(nb::module_& module) {
    nb::class_<AdmissionCandidate>(module, "AdmissionCandidate", "From where a prompt may start, compared exactly.")
        .def_prop_ro("checkpoint", [](const AdmissionCandidate& candidate) { return candidate.source.value; })
        .def_prop_ro("use", [](const AdmissionCandidate& candidate) { return std::string(to_string(candidate.use)); })
        .def_prop_ro("is_root", &AdmissionCandidate::is_root)
        .def_ro("frontier", &AdmissionCandidate::frontier, "Tokens that need not be computed.")
        .def_ro("prompt_tokens", &AdmissionCandidate::prompt_tokens)
        .def_ro("truncated", &AdmissionCandidate::truncated, "Less than the checkpoint has.");
    nb::class_<PublicationValue>(module, "Publication", "What a transition publishes in the end.")
        .def_static(
            "admission",
            [](const AdmissionCandidate& candidate, const PreparedPrompt& prompt, std::int64_t tokens,
               bool count_tokens, std::int64_t captures) {
                return PublicationValue{admission(candidate, prompt, tokens, count_tokens, captures)};
            },
            nb::arg("candidate"), nb::arg("prompt"), nb::arg("tokens"), nb::arg("count_tokens") = false,
            nb::arg("captures") = 0,
            "A new sequence for the prompt that the candidate was compared with; the others as Program.open_sequence.")
        .def_static(
            "capture",
            [](std::uint64_t sequence, const std::string& kind, const std::string& tier, bool own) {
                return PublicationValue{capture_of(sequence, kind, tier, own)};
            },
            nb::arg("sequence"), nb::arg("kind") = "long_anchor", nb::arg("tier") = "device", nb::arg("own") = true)
        .def_static(
            "finish",
            [](std::uint64_t sequence, const std::string& kind, const std::string& tier) {
                return PublicationValue{finish_of(sequence, kind, tier)};
            },
            nb::arg("sequence"), nb::arg("kind") = "session_endpoint", nb::arg("tier") = "device")
        .def_static(
            "nothing", [] { return PublicationValue{NoPublication{}}; }, "Only what happens to inactive owners.");
}

// --- values ---------------------------------------------------------------------------------------------------------

void bind_degradation(nb::module_& module) {
    nb::class_<Degradation>(module, "Degradation", "One step down for one inactive checkpoint or owner.")
        .def(
            "__init__",
            [](Degradation* self, const std::string& kind, std::uint64_t owner, std::uint64_t checkpoint,
               std::int64_t device_pages, std::int64_t frontier) {
                new (self)
                    Degradation{.kind = named<DegradationKind>(kind, kDegradationKinds, "no such kind of degradation"),
                                .owner = {owner},
                                .checkpoint = {checkpoint},
                                .device_pages = device_pages,
                                .frontier = frontier};
            },
            nb::arg("kind"), nb::arg("owner") = 0, nb::arg("checkpoint") = 0, nb::arg("device_pages") = 0,
            nb::arg("frontier") = 0,
            "'evict' names an owner, all other kinds a checkpoint; 'pages_to_host' keeps device_pages on Device, "
            "'shorten' cuts to frontier.")
        .def_static(
            "kinds",
            [] {
                std::vector<std::string> names;
                for (std::int64_t i = 0; i < kDegradationKinds; ++i)
                    names.emplace_back(to_string(static_cast<DegradationKind>(i)));
                return names;
            },
            "By their numbers in rows.");
}

void bind_assessment(nb::module_& module) {
    nb::class_<TargetAssessment>(module, "TargetAssessment", "What a complete target comes to.")
        .def_prop_ro(
            "status", [](const TargetAssessment& assessed) { return std::string(to_string(assessed.status)); },
            "'ready', 'needs_transfer', 'temporarily_blocked' or 'permanently_infeasible'.")
        .def_prop_ro("feasible", &TargetAssessment::feasible)
        .def_prop_ro("is_short_of_cache", &TargetAssessment::is_short_of_cache,
                     "Whether degrading inactive owners further can make it feasible.")
        .def_prop_ro(
            "refusal",
            [](const TargetAssessment& assessed) -> std::optional<Refusal> {
                if (assessed.feasible()) return std::nullopt;
                return Refusal{assessed.reason, assessed.wanted, assessed.found};
            },
            "Why it is not feasible.")
        .def_prop_ro(
            "row", [](const TargetAssessment& assessed) { return assessment_rows({&assessed, 1}); },
            "All facts, int64 [1, columns].")
        .def_static("columns", &assessment_columns, "Names of the columns of assessment rows.")
        .def_static(
            "statuses",
            [] {
                std::vector<std::string> names;
                for (std::int64_t i = 0; i < kTargetStatuses; ++i)
                    names.emplace_back(to_string(static_cast<TargetStatus>(i)));
                return names;
            },
            "By their numbers in rows.");
}

// --- sessions -------------------------------------------------------------------------------------------------------

// What may read the prompt, all owners or all pages of a target computes without the GIL. The other calls look at a few
// handles or one target: to give the GIL away and wait for it again would take longer than they do. Meanwhile nobody else
// touches the program: it has one thread.
template <typename Call>
auto without_gil(Call&& call) {
    const nb::gil_scoped_release release;
    return call();
}

using Facts = std::pair<FactRows, FactRows>;

std::vector<TargetId> targets_of(const std::vector<std::uint64_t>& values) {
    std::vector<TargetId> targets;
    for (const std::uint64_t value : values) targets.push_back({value});
    return targets;
}

void bind_targets(nb::class_<PlanningSession>& session) {
    session
        .def(
            "open",
            [](PlanningSession& self, const std::vector<PublicationValue>& options,
               const std::vector<std::uint64_t>& protected_owners) {
                require(!options.empty(), "a session needs a publication");
                std::vector<Publication> publications;
                for (const PublicationValue& option : options) publications.push_back(option.publication);
                return to_python<std::monostate>(self.open(publications, owners_of(protected_owners)));
            },
            nb::arg("options"), nb::arg("protected_owners"),
            "Begins a planning problem at this revision; earlier targets are not known any more. An option that "
            "cannot be made now is left out, and the others keep their numbers; refused if none can be made.")
        .def(
            "why_left_out",
            [](const PlanningSession& self, std::int64_t option) {
                require(option >= 0 && option < self.options(), "no such option");
                return self.why_left_out(option);
            },
            nb::arg("option"), "The refusal of an option that was left out, else None.")
        .def(
            "identity",
            [](PlanningSession& self, std::int64_t option) { return to_python<std::uint64_t>(self.identity(option)); },
            nb::arg("option"), "The target that does only what the option needs.")
        .def(
            "maximal",
            [](PlanningSession& self, std::int64_t option) {
                const nb::gil_scoped_release release;
                return to_python<std::uint64_t>(self.maximal(option));
            },
            nb::arg("option"), "The target in which every eligible owner is gone.")
        .def(
            "degradations",
            [](PlanningSession& self, std::uint64_t target) -> std::variant<FactRows, Refusal> {
                const auto steps = without_gil([&] { return self.degradations({target}); });
                if (!steps) return steps.error();
                return degradation_rows(steps.value());
            },
            nb::arg("target"), "Steps that could help against what it lacks, int64 [n, columns].")
        .def(
            "degrade",
            [](PlanningSession& self, std::uint64_t target, const std::vector<Degradation>& steps) {
                const nb::gil_scoped_release release;
                return to_python<std::uint64_t>(self.degrade({target}, steps));
            },
            nb::arg("target"), nb::arg("steps"), "The target behind these steps.")
        .def(
            "successors",
            [](PlanningSession& self, std::uint64_t target) -> std::variant<std::vector<std::uint64_t>, Refusal> {
                const nb::gil_scoped_release release;
                const auto made = self.successors({target});
                if (!made) return made.error();
                std::vector<std::uint64_t> targets;
                for (const TargetId next : made.value()) targets.push_back(next.value);
                return targets;
            },
            nb::arg("target"), "One target per step of degradations, in their order, until there is no place for more.")
        .def_prop_ro_static(
            "max_targets", [](nb::handle) { return PlanningSession::kMaxTargets; },
            "Degraded targets of one opening; identity and maximal ones have their places besides.")
        .def_prop_ro_static(
            "max_options", [](nb::handle) { return PlanningSession::kMaxOptions; },
            "Root, and two uses of each of 16 sources.")
        .def_static("degradation_columns", &degradation_columns)
        .def_static("recovery_columns", &recovery_columns);
}

void bind_facts(nb::class_<PlanningSession>& session) {
    session
        .def(
            "assess",
            [](PlanningSession& self, std::uint64_t target) {
                return to_python<TargetAssessment>(self.assess({target}));
            },
            nb::arg("target"))
        .def(
            "assess_many",
            [](PlanningSession& self, const std::vector<std::uint64_t>& targets) -> std::variant<Facts, Refusal> {
                TargetFacts facts;
                const auto assessed = without_gil([&] { return self.assess_many(targets_of(targets), facts); });
                if (!assessed) return assessed.error();
                return Facts{assessment_rows(facts.assessments), recovery_rows(facts.recipes)};
            },
            nb::arg("targets"),
            "Assessment rows, one per target, and recovery rows of the checkpoints that differ from the identity.")
        .def(
            "baseline",
            [](PlanningSession& self, std::int64_t option) -> std::variant<FactRows, Refusal> {
                const auto recipes = without_gil([&] { return self.baseline(option); });
                if (!recipes) return recipes.error();
                return recovery_rows(recipes.value());
            },
            nb::arg("option"), "Recovery rows of all checkpoints in the option's identity.")
        .def(
            "seal",
            [](PlanningSession& self, std::uint64_t target) -> std::variant<PlanValue, Refusal> {
                auto plan = without_gil([&] { return self.seal({target}); });
                if (!plan) return plan.error();
                return PlanValue{std::move(plan).value()};
            },
            nb::arg("target"), "A plan, for one start at this revision.");
}

}  // namespace

void bind_planning_values(nb::module_& module) {
    bind_publications(module);
    bind_degradation(module);
    bind_assessment(module);
    nb::class_<PlanValue>(module, "ContextPlan", "A sealed target. Used up by Program.start_transaction.");
}

void bind_planning_sessions(nb::module_& module) {
    nb::class_<PlanningSession> session(module, "PlanningSession",
                                        "One planning problem at one revision; changes nothing.");
    session.def(
        "__init__", [](PlanningSession* self, Program& program) { new (self) PlanningSession(program.context()); },
        nb::arg("program"), nb::keep_alive<1, 2>());
    bind_targets(session);
    bind_facts(session);
}

void bind_candidates(nb::class_<Program>& program) {
    program.def("candidates", &candidates, nb::arg("prompt"), nb::arg("sources"),
                "Root, and each pair of checkpoint and use ('retain', 'consume', 'continue') that can serve this "
                "prompt.");
}

}  // namespace ninfer::bindings
