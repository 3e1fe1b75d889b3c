// The way down from one target of a session to others.

#include <algorithm>

#include "cpp/program/degradation_listing.h"
#include "cpp/program/degradation_step.h"
#include "cpp/program/planning_session.h"
#include "cpp/state/page_count.h"

namespace ninfer {

Result<std::span<const Degradation>, Refusal> PlanningSession::degradations(TargetId target) {
    const auto found = find(target);
    if (!found) return found.error();
    degradations_.clear();
    const TargetAssessment assessment = assess_now(*found.value());
    if (assessment.status == TargetStatus::kPermanentlyInfeasible || !assessment.is_short_of_cache())
        return std::span<const Degradation>{};
    read_domain();
    collect_outcomes(*found.value());
    const Option& option = options_[static_cast<std::size_t>(found.value()->option)];
    const MembersOfOption members{option.fixed, domain_.member_of(option.need.source), continued_member(option)};
    list_degradations(domain_, outcomes_, members, assessment.residual, degradations_);
    return std::span<const Degradation>(degradations_);
}

std::int32_t PlanningSession::continued_member(const Option& option) const {
    const ResourceNeed& need = option.need.need;
    if (!need.consumes || is_aligned(need.frontier)) return PlanningDomain::kNoMember;
    const std::int32_t source = domain_.member_of(option.need.source);
    const bool whole = identity_[static_cast<std::size_t>(source)].frontier == need.frontier;
    return whole ? source : PlanningDomain::kNoMember;
}

Result<TargetId, Refusal> PlanningSession::degrade(TargetId target, std::span<const Degradation> steps) {
    const auto found = find(target);
    if (!found) return found.error();
    read_domain();
    const std::int32_t option = found.value()->option;
    changes_ = found.value()->changes;
    for (const Degradation& step : steps) {
        const auto members = members_of(options_[static_cast<std::size_t>(option)], step);
        if (!members) return members.error();
        for (const std::int32_t member : members.value()) {
            HoldingOutcome outcome = outcome_of(member);
            if (step.kind == DegradationKind::kEvict && !outcome.survives) continue;
            const HoldingShape& shape = domain_.members()[static_cast<std::size_t>(member)].shape;
            if (const auto refusal = step_down(outcome, shape, step)) return *refusal;
            set_change(member, outcome);
        }
    }
    return add(option, true);
}

Result<std::vector<TargetId>, Refusal> PlanningSession::successors(TargetId target) {
    if (const auto listed = degradations(target); !listed) return listed.error();
    const std::vector<Degradation> steps = degradations_;
    std::vector<TargetId> targets;
    for (const Degradation& step : steps) {
        const auto next = degrade(target, {&step, 1});
        if (!next && next.error().kind == RefusalKind::kNoTargets) break;
        NINFER_ASSERT(next.has_value(), "a listed step is refused");
        targets.push_back(next.value());
    }
    return targets;
}

Result<std::vector<std::int32_t>, Refusal> PlanningSession::members_of(const Option& option,
                                                                       const Degradation& step) const {
    const bool evicts = step.kind == DegradationKind::kEvict;
    const std::int32_t first = evicts ? domain_.first_member_of(step.owner) : domain_.member_of(step.checkpoint);
    const Refusal unknown{RefusalKind::kStaleHandle, 1, 0};
    if (first == PlanningDomain::kNoMember) return unknown;
    const std::int32_t end = evicts ? domain_.members()[static_cast<std::size_t>(first)].owner_end : first + 1;
    std::vector<std::int32_t> members;
    for (std::int32_t i = first; i < end; ++i) {
        if (!domain_.members()[static_cast<std::size_t>(i)].eligible) return unknown;
        if (is_fixed(option, i, step.kind)) return unknown;
        members.push_back(i);
    }
    return members;
}

// What leaves with the source does; the source itself stays where it is, but for what it has twice.
bool PlanningSession::is_fixed(const Option& option, std::int32_t member, DegradationKind kind) const {
    if (!std::ranges::binary_search(option.fixed, member)) return false;
    return !drops_redundant(kind) || member != domain_.member_of(option.need.source);
}

HoldingOutcome PlanningSession::outcome_of(std::int32_t member) const {
    const auto found = std::ranges::lower_bound(changes_, member, {}, &TargetChange::member);
    if (found != changes_.end() && found->member == member) return found->outcome;
    return identity_[static_cast<std::size_t>(member)];
}

void PlanningSession::set_change(std::int32_t member, const HoldingOutcome& outcome) {
    const auto found = std::ranges::lower_bound(changes_, member, {}, &TargetChange::member);
    if (found != changes_.end() && found->member == member)
        found->outcome = outcome;
    else
        changes_.insert(found, {member, outcome});
}

}  // namespace ninfer
