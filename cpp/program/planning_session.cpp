#include "cpp/program/planning_session.h"

#include <algorithm>

#include "cpp/program/context_transaction.h"
#include "cpp/program/degradation_step.h"
#include "cpp/program/protected_owners.h"

namespace ninfer {

PlanningSession::PlanningSession(ContextState& state)
    : state_(state),
      arena_(kMaxTargets),
      domain_(state),
      projector_(domain_.targets()),
      recipes_(state),
      touched_(state.stores.state_stores()),
      touched_projector_(touched_) {}

Result<Nothing, Refusal> PlanningSession::open(std::span<const Publication> options,
                                               std::span<const OwnerHandle> protected_owners) {
    NINFER_ASSERT_LE(1, std::ssize(options));
    if (++opening_ == 0) opening_ = 1;
    options_.clear();
    arena_.clear();
    domain_read_ = recipes_read_ = false;
    revision_ = state_.resource_revision;
    if (const auto refusal = state_.check_no_transaction()) return *refusal;
    if (std::ssize(options) > kMaxOptions) return Refusal{RefusalKind::kBatchSize, std::ssize(options), kMaxOptions};
    if (const auto refusal = check_owners(state_, protected_owners)) return *refusal;
    protected_.assign(protected_owners.begin(), protected_owners.end());
    for (const Publication& publication : options) {
        auto need = find_need(publication);
        if (need)
            options_.push_back({publication, std::nullopt, std::move(need).value(), {}});
        else
            options_.push_back({publication, need.error(), {}, {}});
    }
    const auto is_left_out = [](const Option& option) { return option.left_out.has_value(); };
    if (!std::ranges::all_of(options_, is_left_out)) return Nothing{};
    const Refusal refusal = *options_.front().left_out;
    options_.clear();
    return refusal;
}

Result<PublicationNeed, Refusal> PlanningSession::find_need(const Publication& publication) const {
    auto need = ninfer::need_of(state_, publication);
    const auto* admission = std::get_if<AdmissionPublication>(&publication);
    if (!need || admission == nullptr || !admission->candidate.takes_owner()) return need;
    if (const auto refusal = check_unprotected(state_, admission->candidate.source, protected_)) return *refusal;
    return need;
}

// --- targets --------------------------------------------------------------------------------------------------------

std::optional<Refusal> PlanningSession::check() const {
    if (const auto refusal = state_.check_no_transaction()) return refusal;
    if (revision_ == state_.resource_revision) return std::nullopt;
    return Refusal{RefusalKind::kStaleRevision, static_cast<std::int64_t>(revision_),
                   static_cast<std::int64_t>(state_.resource_revision)};
}

std::optional<Refusal> PlanningSession::check_option(std::int64_t option) const {
    if (const auto refusal = check()) return refusal;
    if (option < 0 || option >= options()) return Refusal{RefusalKind::kStaleHandle, option, options()};
    return why_left_out(option);
}

Result<PlannedTarget*, Refusal> PlanningSession::find(TargetId target) {
    if (const auto refusal = check()) return *refusal;
    if (target.generation() != opening_ || target.slot() >= arena_.size())
        return Refusal{RefusalKind::kStaleHandle, target.generation(), opening_};
    return &arena_.at(target.slot());
}

Result<TargetId, Refusal> PlanningSession::add(std::int32_t option, bool degraded) {
    const auto index = arena_.add(option, changes_, degraded);
    if (!index) return Refusal{RefusalKind::kNoTargets, arena_.most_degraded() + 1, arena_.most_degraded()};
    return TargetId{std::uint64_t{opening_} << 32 | static_cast<std::uint64_t>(*index)};
}

Result<TargetId, Refusal> PlanningSession::identity(std::int64_t option) {
    if (const auto refusal = check_option(option)) return *refusal;
    changes_.clear();
    return add(static_cast<std::int32_t>(option), false);
}

Result<TargetId, Refusal> PlanningSession::maximal(std::int64_t option) {
    if (const auto refusal = check_option(option)) return *refusal;
    read_domain();
    const auto& fixed = options_[static_cast<std::size_t>(option)].fixed;
    changes_.clear();
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(identity_.size()); ++i)
        if (domain_.members()[static_cast<std::size_t>(i)].eligible && !std::ranges::binary_search(fixed, i))
            changes_.push_back({i, removed_outcome()});
    return add(static_cast<std::int32_t>(option), false);
}

void PlanningSession::read_domain() {
    if (domain_read_) return;
    std::vector<CheckpointHandle> sources;
    for (const Option& option : options_) {  // one that was left out has no source
        if (option.need.source != CheckpointHandle{}) sources.push_back(option.need.source);
        sources.insert(sources.end(), option.need.leaving.begin(), option.need.leaving.end());
    }
    domain_.read(protected_, sources);
    identity_ = domain_.targets().identity();
    for (Option& option : options_) read_fixed(option);
    domain_read_ = true;
}

void PlanningSession::read_fixed(Option& option) {
    option.fixed.clear();
    if (option.need.source != CheckpointHandle{}) option.fixed.push_back(domain_.member_of(option.need.source));
    for (const CheckpointHandle checkpoint : option.need.leaving) option.fixed.push_back(domain_.member_of(checkpoint));
    std::ranges::sort(option.fixed);
}

// --- projections ----------------------------------------------------------------------------------------------------

ResourceNeed PlanningSession::need_of(const Option& option, std::int32_t source) const {
    ResourceNeed need = option.need.need;
    need.source = need.kind == ResourceNeed::Kind::kSource ? source : ResourceNeed::kNoHolding;
    return need;
}

void PlanningSession::collect_outcomes(const PlannedTarget& target) {
    outcomes_ = identity_;
    const Option& option = options_[static_cast<std::size_t>(target.option)];
    for (const CheckpointHandle checkpoint : option.need.leaving)
        outcomes_[static_cast<std::size_t>(domain_.member_of(checkpoint))] = removed_outcome();
    for (const TargetChange& change : target.changes)
        outcomes_[static_cast<std::size_t>(change.member)] = change.outcome;
}

// An untouched holding wants everything as it is, which is what the projection takes for granted of anybody outside.
void PlanningSession::read_touched(const PlannedTarget& target) {
    static constexpr HoldingOutcome kRemoved{.survives = false};
    touched_checkpoints_.clear();
    touched_holdings_.clear();
    touched_outcomes_.clear();
    const Option& option = options_[static_cast<std::size_t>(target.option)];
    if (option.need.source != CheckpointHandle{}) touch(option.need.source, nullptr);
    for (const CheckpointHandle checkpoint : option.need.leaving) touch(checkpoint, &kRemoved);
    for (const TargetChange& change : target.changes) {
        const CheckpointHandle changed = domain_.members()[static_cast<std::size_t>(change.member)].checkpoint;
        if (changed == option.need.source)
            touched_outcomes_.front() = &change.outcome;
        else
            touch(changed, &change.outcome);
    }
    const auto read = touched_.read(touched_holdings_, revision_);
    NINFER_ASSERT(read.has_value(), "a published checkpoint is not frozen");
    outcomes_.clear();
    for (std::size_t i = 0; i < touched_outcomes_.size(); ++i)
        outcomes_.push_back(touched_outcomes_[i] != nullptr ? *touched_outcomes_[i]
                                                            : touched_.identity_of(static_cast<std::int32_t>(i)));
}

void PlanningSession::touch(CheckpointHandle handle, const HoldingOutcome* outcome) {
    const Checkpoint& checkpoint = *state_.owners.find(handle).value();
    touched_checkpoints_.push_back(handle);
    touched_holdings_.push_back({checkpoint.kv, checkpoint.image});
    touched_outcomes_.push_back(outcome);
}

ResourceProjection PlanningSession::project(const PlannedTarget& target) {
    const Option& option = options_[static_cast<std::size_t>(target.option)];
    if (target.changes.empty()) {
        read_touched(target);
        return touched_projector_.project(outcomes_, need_of(option, 0));
    }
    read_domain();
    collect_outcomes(target);
    return projector_.project(outcomes_, need_of(option, domain_.member_of(option.need.source)));
}

// --- assessment -----------------------------------------------------------------------------------------------------

Result<TargetAssessment, Refusal> PlanningSession::assess(TargetId target) {
    const auto found = find(target);
    if (!found) return found.error();
    return assess_now(*found.value());
}

Result<Nothing, Refusal> PlanningSession::assess_many(std::span<const TargetId> targets, TargetFacts& facts) {
    facts.assessments.clear();
    facts.recipes.clear();
    for (const TargetId target : targets)
        if (const auto found = find(target); !found) return found.error();
    for (std::size_t i = 0; i < targets.size(); ++i) {
        PlannedTarget& target = *find(targets[i]).value();
        facts.assessments.push_back(assess_now(target));
        append_recipes(target, static_cast<std::int64_t>(i), false, facts.recipes);
    }
    return Nothing{};
}

// What does not depend on the revision alone is judged anew each time.
const TargetAssessment& PlanningSession::assess_now(PlannedTarget& target) {
    const Option& option = options_[static_cast<std::size_t>(target.option)];
    if (!target.assessment) {
        const ResourceProjection projection = project(target);
        TargetAssessment& made = target.assessment.emplace();
        made.used = projection.used;
        made.peak = projection.peak;
        made.residual = projection.residual;
        made.pins = projection.pins;
        made.to_host = projection.to_host;
        made.to_device = projection.to_device;
        made.within_device = projection.within_device;
        made.own_to_host = option.need.own_to_host;
        made.own_within_device = option.need.own_within_device;
        made.kv = projection.kv;
        made.image = projection.image;
        if (const auto* admission = std::get_if<AdmissionPublication>(&option.publication)) {
            made.reused_tokens = admission->candidate.frontier;
            made.computed_tokens = admission->candidate.prompt_tokens - admission->candidate.frontier;
        }
        count_changes(target, made);
    }
    const bool has_stages = !target.changes.empty() || option.need.need.kind != ResourceNeed::Kind::kRoom;
    judge(option, has_stages, *target.assessment);
    return *target.assessment;
}

void PlanningSession::judge(const Option& option, bool has_stages, TargetAssessment& assessment) const {
    const auto say = [&](TargetStatus status, const Refusal& refusal) {
        assessment.status = status;
        assessment.reason = refusal.kind;
        assessment.wanted = refusal.wanted;
        assessment.found = refusal.found;
    };
    if (const auto refusal = check_alone(state_, option.publication))
        return say(TargetStatus::kPermanentlyInfeasible, *refusal);
    ResourceProjection projection;
    projection.peak = assessment.peak;
    projection.residual = assessment.residual;
    projection.pins = assessment.pins;
    auto refusal = refusal_of(projection, axes_of(state_.stores.copies().capacity()));
    if (!refusal) refusal = check_place(state_, option.publication);
    if (!refusal && has_stages) refusal = check_serial(state_);
    if (refusal) return say(TargetStatus::kTemporarilyBlocked, *refusal);
    const bool copies =
        assessment.to_host.operations + assessment.to_device.operations + assessment.within_device.operations > 0;
    say(copies ? TargetStatus::kNeedsTransfer : TargetStatus::kReady, {});
}

void PlanningSession::count_changes(const PlannedTarget& target, TargetAssessment& assessment) const {
    assessment.checkpoints_leaving = std::ssize(options_[static_cast<std::size_t>(target.option)].need.leaving);
    std::int32_t owner_gone = 0;  // members of the present owner that are gone
    for (std::size_t i = 0; i < target.changes.size(); ++i) {
        const auto& [member, outcome] = target.changes[i];
        const DomainMember& of = domain_.members()[static_cast<std::size_t>(member)];
        const HoldingOutcome& before = identity_[static_cast<std::size_t>(member)];
        if (i == 0 || target.changes[i - 1].member < of.owner_begin) owner_gone = 0;
        if (!outcome.survives) {
            ++assessment.checkpoints_removed;
            if (++owner_gone == of.owner_end - of.owner_begin) ++assessment.owners_evicted;
        } else if (outcome.frontier < before.frontier) {
            ++assessment.checkpoints_shortened;
        } else {
            ++assessment.checkpoints_moved;
        }
    }
}

// --- recoveries -----------------------------------------------------------------------------------------------------

Result<std::vector<RecoveryRecipe>, Refusal> PlanningSession::baseline(std::int64_t option) {
    const auto target = identity(option);
    if (!target) return target.error();
    std::vector<RecoveryRecipe> recipes;
    append_recipes(arena_.at(target.value().slot()), 0, true, recipes);
    return recipes;
}

void PlanningSession::append_recipes(const PlannedTarget& target, std::int64_t index, bool all,
                                     std::vector<RecoveryRecipe>& recipes) {
    if (!all && target.changes.empty()) return;
    read_domain();
    if (!recipes_read_) recipes_.read(domain_);
    recipes_read_ = true;
    collect_outcomes(target);
    const Option& option = options_[static_cast<std::size_t>(target.option)];
    const std::int32_t source = domain_.member_of(option.need.source);
    projector_.project(outcomes_, need_of(option, source));
    changed_.assign(identity_.size(), 0);
    for (const TargetChange& change : target.changes) changed_[static_cast<std::size_t>(change.member)] = 1;
    const std::int32_t consumed = option.need.need.consumes ? source : PlanningDomain::kNoMember;
    recipes_.append({.target = index,
                     .projector = &projector_,
                     .outcomes = outcomes_,
                     .consumed = consumed,
                     .changed = changed_,
                     .all = all},
                    recipes);
}

// --- sealing --------------------------------------------------------------------------------------------------------

Result<ContextPlan, Refusal> PlanningSession::seal(TargetId id) {
    const auto found = find(id);
    if (!found) return found.error();
    PlannedTarget& target = *found.value();
    const TargetAssessment& assessment = assess_now(target);
    if (!assessment.feasible()) return Refusal{assessment.reason, assessment.wanted, assessment.found};
    const Option& option = options_[static_cast<std::size_t>(target.option)];
    read_touched(target);
    auto resources = ResourcePlan::seal(touched_projector_, outcomes_, need_of(option, 0));
    if (!resources) return resources.error();
    return ContextPlan{.resources = std::move(resources).value(),
                       .checkpoints = touched_checkpoints_,
                       .publication = option.publication,
                       .computed = option.need.computed};
}

}  // namespace ninfer
