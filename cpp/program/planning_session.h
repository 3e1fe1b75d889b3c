#pragma once

// One planning problem: which of several publications to make, at whose cost. Explores complete targets over the inactive,
// unprotected owners and tells facts about each; changes nothing.
//
// Life of a session: 1. opened at a revision, with the publications that are possible (an admission's candidates, root
// among them; or a capture on either tier) and the owners that nobody may touch; 2. identity targets: only what the
// publication needs; 3. degradations of a target lead to others, never back; the caller chooses, since it knows what things
// are worth; 4. targets are assessed, each exactly, in any order; 5. one is sealed to a plan; 6. opened again, or gone.
// Targets, degradations and facts belong to one opening at one revision: every call is refused with kStaleRevision when the
// revision has moved, kTransactionOpen while a transaction is open, kStaleHandle for a target of an earlier opening.
//
// What a session costs: the identity targets read their own source only. The first pressure target reads all eligible
// owners once (runs, and pages of runs that lie in several places); each further one costs a pass over those runs.
// There are at most kMaxTargets besides the identity and maximal ones, which are always to be had.
// Memory is used again by the next opening.

#include <optional>
#include <span>
#include <vector>

#include "cpp/program/context_plan.h"
#include "cpp/program/degradation.h"
#include "cpp/program/planning_domain.h"
#include "cpp/program/publication_need.h"
#include "cpp/program/recovery_recipes.h"
#include "cpp/program/target_arena.h"

namespace ninfer {

using TargetId = Handle<struct TargetTag>;  // the generation is the opening

// Facts of many targets as arrays: element i is of the i-th target asked about.
struct TargetFacts {
    std::vector<TargetAssessment> assessments;
    std::vector<RecoveryRecipe> recipes;  // of checkpoints that differ from the identity, by target
};

class PlanningSession {
   public:
    static constexpr std::int64_t kMaxTargets = 256;
    static constexpr std::int64_t kMaxOptions = 33;  // root, and two uses of each of 16 sources

    explicit PlanningSession(ContextState& state);

    // 1..kMaxOptions publications. One that cannot be made now is left out, and the others keep their numbers: as
    // publication_need.h says of it; kProtected (the owner would be taken over). Whatever asks for a target of it is
    // refused in the same way. kTransactionOpen; kBatchSize; kStaleHandle (a protected owner is not there, so that what
    // is meant would not be protected); if none can be made, why the first one cannot. After a
    // refusal no target of this session is known any more.
    Result<Nothing, Refusal> open(std::span<const Publication> options, std::span<const OwnerHandle> protected_owners);
    std::int64_t options() const noexcept { return std::ssize(options_); }
    // Why the option was left out, if it was. The option is one of this opening.
    const std::optional<Refusal>& why_left_out(std::int64_t option) const {
        NINFER_ASSERT_LE(0, option);
        NINFER_ASSERT_LT(option, options());
        return options_[static_cast<std::size_t>(option)].left_out;
    }
    std::uint64_t revision() const noexcept { return revision_; }

    // The target that does nothing but what the option needs. A consumed source's deeper checkpoints leave in it.
    Result<TargetId, Refusal> identity(std::int64_t option);
    // The one in which all eligible owners are gone, the source apart: with root, the bounded fallback.
    Result<TargetId, Refusal> maximal(std::int64_t option);
    // Steps that could help against what the target lacks, in the order of members; empty if it lacks nothing that
    // inactive owners have. Nothing is left out because it would free nothing alone. Valid until the next call.
    Result<std::span<const Degradation>, Refusal> degradations(TargetId target);
    // The target behind these steps; the same one again if it is known. kNoTargets; kStaleHandle (gone, or not to be
    // touched: protected, active, what leaves with the source, or itself but for redundant Host replicas); kBackwards (no step down).
    Result<TargetId, Refusal> degrade(TargetId target, std::span<const Degradation> steps);
    // One target per degradation, until there is no place for more.
    Result<std::vector<TargetId>, Refusal> successors(TargetId target);

    Result<TargetAssessment, Refusal> assess(TargetId target);
    Result<Nothing, Refusal> assess_many(std::span<const TargetId> targets, TargetFacts& facts);
    // Recipes of all checkpoints in the option's identity: what savings are measured against.
    Result<std::vector<RecoveryRecipe>, Refusal> baseline(std::int64_t option);

    // Refused as assessed, if it is not feasible.
    Result<ContextPlan, Refusal> seal(TargetId target);

   private:
    struct Option {
        Publication publication;
        std::optional<Refusal> left_out;  // why; it has no need then
        PublicationNeed need;
        // The source, and what leaves with it, sorted, once the domain has been read. No step touches these members, but
        // that the source may lose redundant Host replicas.
        std::vector<std::int32_t> fixed;
    };

    Result<PublicationNeed, Refusal> find_need(const Publication& publication) const;
    std::optional<Refusal> check() const;
    std::optional<Refusal> check_option(std::int64_t option) const;
    Result<PlannedTarget*, Refusal> find(TargetId target);
    Result<TargetId, Refusal> add(std::int32_t option, bool degraded);
    void read_domain();
    void read_fixed(Option& option);

    // The outcomes of all members.
    void collect_outcomes(const PlannedTarget& target);
    // The checkpoints that the target touches, its source first, and their outcomes.
    void read_touched(const PlannedTarget& target);
    void touch(CheckpointHandle checkpoint, const HoldingOutcome* outcome);
    ResourceProjection project(const PlannedTarget& target);
    ResourceNeed need_of(const Option& option, std::int32_t source) const;

    Result<std::vector<std::int32_t>, Refusal> members_of(const Option& option, const Degradation& step) const;
    bool is_fixed(const Option& option, std::int32_t member, DegradationKind kind) const;
    // The option's source, if it is consumed as a whole and ends within a page.
    std::int32_t continued_member(const Option& option) const;
    void set_change(std::int32_t member, const HoldingOutcome& outcome);
    HoldingOutcome outcome_of(std::int32_t member) const;

    const TargetAssessment& assess_now(PlannedTarget& target);
    void judge(const Option& option, bool has_stages, TargetAssessment& assessment) const;
    void count_changes(const PlannedTarget& target, TargetAssessment& assessment) const;
    void append_recipes(const PlannedTarget& target, std::int64_t index, bool all,
                        std::vector<RecoveryRecipe>& recipes);

    ContextState& state_;
    std::uint64_t revision_ = 0;
    std::uint32_t opening_ = 0;
    std::vector<Option> options_;
    std::vector<OwnerHandle> protected_;
    TargetArena arena_;
    std::vector<TargetChange> changes_;  // of the target that is being made
    std::vector<Degradation> degradations_;

    bool domain_read_ = false;
    bool recipes_read_ = false;
    PlanningDomain domain_;
    ResourceProjector projector_;
    RecoveryRecipes recipes_;
    std::vector<HoldingOutcome> identity_;  // of the domain
    std::vector<HoldingOutcome> outcomes_;  // of what was projected last
    TargetDomain touched_;
    ResourceProjector touched_projector_;
    std::vector<CheckpointHandle> touched_checkpoints_;
    std::vector<Holding> touched_holdings_;
    std::vector<const HoldingOutcome*> touched_outcomes_;  // nullptr: as it is
    std::vector<std::uint8_t> changed_;                    // [member]
};

}  // namespace ninfer
