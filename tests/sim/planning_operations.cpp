#include "tests/sim/planning_operations.h"

#include <algorithm>
#include <numeric>

#include "tests/sim/placement_operations.h"
#include "tests/sim/planning_problem.h"
#include "tests/sim/recovery_check.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

constexpr int kMostSteps = 14;
constexpr std::int64_t kMostTargets = PlanningSession::kMaxTargets;

// One opened session, and every target that it was asked for.
class Planning {
   public:
    Planning(ProgramSim& sim, PlanningProblem& problem) : sim_(sim), problem_(problem) {}

    bool open() {
        std::vector<OwnerHandle> owners;
        for (const Key owner : problem_.protected_owners) owners.push_back(OwnerHandle{owner});
        const Expected expected = no_opening(sim_, problem_);
        sim_.begin(PartOperation::kOpen);
        if (!sim_.attempt(expected, [&] { return sim_.session.open(problem_.options, owners); })) return false;
        for (std::size_t i = 0; i < problem_.options.size(); ++i) check_left_out(static_cast<int>(i));
        return true;
    }

    TargetId identity(int option) {
        sim_.begin(PartOperation::kIdentity);
        return learn({.option = option}, *sim_.attempt({}, [&] { return sim_.session.identity(option); }));
    }
    TargetId maximal(int option) {
        sim_.begin(PartOperation::kMaximal);
        const auto made = sim_.attempt({}, [&] { return sim_.session.maximal(option); });
        sim_.count(ProgramSituation::kMaximal);
        return learn(maximal_target(sim_, problem_, option), *made);
    }

    std::optional<TargetId> degrade(TargetId from, std::span<const Degradation> steps) {
        ModelTarget target = target_of(from);
        Expected expected;
        for (const Degradation& step : steps)
            if (!expected) expected = step_down(sim_, problem_, target, step);
        const bool known = known_.contains(target);
        if (!expected && !known && degraded_ == kMostTargets)
            expected = Refusal{kNoTargets, kMostTargets + 1, kMostTargets};
        sim_.begin(PartOperation::kDegrade);
        const auto made = sim_.attempt(expected, [&] { return sim_.session.degrade(from, steps); });
        if (!made) return std::nullopt;
        if (!known) ++degraded_;
        return learn(target, *made);
    }

    std::span<const Degradation> list(TargetId target) {
        sim_.begin(PartOperation::kList);
        const auto listed = *sim_.attempt({}, [&] { return sim_.session.degradations(target); });
        const ModelProjection projection = projection_of(target);
        const ResourceAxes& lacks = projection.residual;
        const bool is_short = lacks.device_pages + lacks.image_slots_checkpoint + lacks.host_blocks > 0;
        const bool never = not_alone(sim_, option_of(target)).has_value();
        if ((!is_short || never) && !listed.empty()) throw SimFailure("steps are listed that nobody needs");
        if (is_short && !never && listed.empty()) check_nothing_left(target);
        return listed;
    }

    // Of some of its targets at once, in any order.
    void compare_recoveries() {
        constexpr int kMostTogether = 3;
        std::vector<KnownTarget> known;
        for (const auto& [target, id] : known_) known.push_back({id, &target});
        std::vector<KnownTarget> asked;
        for (int i = sim_.random.between(1, kMostTogether); i > 0; --i)
            asked.push_back(known[static_cast<std::size_t>(sim_.random.below(static_cast<int>(known.size())))]);
        check_recoveries(sim_, problem_, asked);
    }
    void compare_baseline(int option) { check_baseline(sim_, problem_, option); }

    TargetAssessment assess(TargetId target) {
        sim_.begin(PartOperation::kAssess);
        const TargetAssessment found = *sim_.attempt({}, [&] { return sim_.session.assess(target); });
        const ModelProjection projection = projection_of(target);
        for (std::size_t i = 0; i < found.used.size(); ++i) expect_axes(projection.used[i], found.used[i], "a stage");
        expect_axes(projection.peak, found.peak, "a peak");
        expect_axes(projection.residual, found.residual, "a residual");
        expect_equal(projection.to_host, static_cast<int>(found.to_host.operations), "copies to Host");
        expect_equal(projection.to_device, static_cast<int>(found.to_device.operations), "copies to Device");
        expect_equal(projection.within_device, static_cast<int>(found.within_device.operations), "copies of tails");
        expect_equal(static_cast<int>(projection.kv), static_cast<int>(found.kv), "how pages come about");
        expect_equal(static_cast<int>(projection.image), static_cast<int>(found.image), "how an image comes about");
        expect_counts(target_of(target), found);
        expect_status(target, projection, found);
        return found;
    }

    void seal(TargetId target, const TargetAssessment& assessed) {
        Expected expected;
        if (!assessed.feasible()) expected = Refusal{assessed.reason, assessed.wanted, assessed.found};
        sim_.begin(PartOperation::kSeal);
        auto plan = sim_.attempt(expected, [&] { return sim_.session.seal(target); });
        sim_.last_target = target;
        if (!plan) return;
        const ModelTarget& wanted = target_of(target);
        sim_.plans.push_back({std::move(*plan), need_of(target), wanted, sim_.model.revision});
        if (sim_.plans.size() > 3) sim_.plans.pop_front();
    }

    const ModelTarget& target_of(TargetId target) const { return targets_.at(target.value); }
    const ModelNeed& need_of(TargetId target) const {
        return problem_.needs[static_cast<std::size_t>(target_of(target).option)];
    }
    Degradation draw_step();

   private:
    const Publication& option_of(TargetId target) const {
        return problem_.options[static_cast<std::size_t>(target_of(target).option)];
    }
    ModelProjection projection_of(TargetId target) { return project(sim_.model, need_of(target), target_of(target)); }

    TargetId learn(const ModelTarget& target, TargetId made) {
        const auto [known, is_new] = known_.emplace(target, made);
        if (!is_new && known->second != made) throw SimFailure("a known target has got another name");
        if (is_new && !targets_.emplace(made.value, target).second) throw SimFailure("two targets have one name");
        return made;
    }

    static void expect_axes(const ResourceAxes& expected, const ResourceAxes& found, const char* what) {
        expect_equal(expected.device_pages, found.device_pages, what);
        expect_equal(expected.image_slots_active, found.image_slots_active, what);
        expect_equal(expected.image_slots_checkpoint, found.image_slots_checkpoint, what);
        expect_equal(expected.host_blocks, found.host_blocks, what);
    }

    void check_left_out(int option) {
        const Expected& no = problem_.left_out[static_cast<std::size_t>(option)];
        const auto& found = sim_.session.why_left_out(option);
        expect_equal(no.has_value(), found.has_value(), "whether an option is left out");
        if (!no) return;
        expect_equal(static_cast<int>(no->kind), static_cast<int>(found->kind), "why an option is left out");
        sim_.count(ProgramSituation::kLeftOut);
        // Whatever asks for a target of it is refused as opening it alone would be, and counts like that.
        sim_.begin(PartOperation::kOpen);
        sim_.attempt(no, [&] { return sim_.session.identity(option); });
        sim_.attempt(no, [&] { return sim_.session.maximal(option); });
    }

    // Then even the release of everybody does not help on any axis that lacks something.
    void check_nothing_left(TargetId target) {
        const ModelTarget all = maximal_target(sim_, problem_, target_of(target).option);
        const ModelProjection last = project(sim_.model, need_of(target), all);
        const ResourceAxes& left = last.residual;
        const ResourceAxes now = projection_of(target).residual;
        const bool helps = left.device_pages < now.device_pages ||
                           left.image_slots_checkpoint < now.image_slots_checkpoint ||
                           left.host_blocks < now.host_blocks;
        if (helps) throw SimFailure("no step is listed although one would help");
    }

    void expect_counts(const ModelTarget& target, const TargetAssessment& found) {
        std::int64_t removed = 0;
        std::int64_t shortened = 0;
        std::map<Key, std::size_t> gone;
        for (const auto& [key, want] : target.wants) {
            const CheckpointRecord& checkpoint = sim_.model.checkpoints.at(key);
            removed += want.survives ? 0 : 1;
            shortened += want.survives && want.frontier < checkpoint.frontier() ? 1 : 0;
            if (!want.survives) ++gone[checkpoint.owner];
        }
        const auto evicted = std::ranges::count_if(
            gone, [&](const auto& item) { return item.second == sim_.model.owners.at(item.first).checkpoints.size(); });
        const auto leaving = std::ssize(problem_.needs[static_cast<std::size_t>(target.option)].leaving);
        expect_equal(leaving, found.checkpoints_leaving, "leaving checkpoints");
        expect_equal(removed, found.checkpoints_removed, "removed checkpoints");
        expect_equal(shortened, found.checkpoints_shortened, "shortened checkpoints");
        expect_equal(std::ssize(target.wants) - removed - shortened, found.checkpoints_moved, "moved checkpoints");
        expect_equal(evicted, found.owners_evicted, "evicted owners");
    }

    void expect_status(TargetId target, const ModelProjection& projection, const TargetAssessment& found) {
        const Publication& publication = option_of(target);
        if (projection.pinned && found.pins == 0) throw SimFailure("a pinned target has no pins");
        if (found.pins > 0 && !sim_.model.any_pin()) throw SimFailure("pins that nobody holds");
        Expected no = not_alone(sim_, publication);
        const bool never = no.has_value();
        if (!no) no = does_not_fit(sim_, projection);
        if (!no && found.pins > 0) no = Refusal{kPinned, 0, found.pins};
        if (!no) no = not_placed(sim_, publication);
        if (!no) no = not_startable(sim_, need_of(target), target_of(target));
        const TargetStatus ready = projection.copies() ? TargetStatus::kNeedsTransfer : TargetStatus::kReady;
        const TargetStatus blocked = never ? TargetStatus::kPermanentlyInfeasible : TargetStatus::kTemporarilyBlocked;
        const TargetStatus status = no ? blocked : ready;
        expect_equal(static_cast<int>(status), static_cast<int>(found.status), "a target's status");
        constexpr ProgramSituation kSituations[] = {ProgramSituation::kReady, ProgramSituation::kNeedsTransfer,
                                                    ProgramSituation::kBlocked, ProgramSituation::kInfeasible};
        sim_.count(kSituations[static_cast<int>(status)]);
        if (!no) return;
        expect_equal(static_cast<int>(no->kind), static_cast<int>(found.reason), "a target's reason");
        expect_equal(no->wanted, found.wanted, "what a blocked target wants");
        expect_equal(no->found, found.found, "what a blocked target has found");
    }

    ProgramSim& sim_;
    PlanningProblem& problem_;
    std::map<ModelTarget, TargetId> known_;
    std::map<Key, ModelTarget> targets_;
    std::int64_t degraded_ = 0;
};

// Any step, legal or not.
Degradation Planning::draw_step() {
    SimRandom& random = sim_.random;
    Degradation step;
    step.kind = static_cast<DegradationKind>(random.below(static_cast<int>(kDegradationKinds)));
    if (random.percent(60))
        step.kind = random.percent(60) ? DegradationKind::kPagesToHost : DegradationKind::kImageToHost;
    if (!sim_.has_images() && random.percent(25)) step.kind = DegradationKind::kShorten;
    const bool anywhere = random.percent(30);
    const Key key = sim_.draw_checkpoint([&](Key, const CheckpointRecord& checkpoint) {
        const int pages = static_cast<int>(checkpoint.view.pages.size());
        const bool is_there = anywhere || sim_.model.on_device(checkpoint.view, pages) > 0;
        return is_there && is_eligible(sim_, problem_, checkpoint.owner);
    });
    step.checkpoint = CheckpointHandle{key};
    if (const CheckpointRecord* checkpoint = sim_.find_checkpoint(key)) {
        step.owner = OwnerHandle{checkpoint->owner};
        const int pages = static_cast<int>(checkpoint->view.pages.size());
        step.device_pages = random.percent(8) ? random.between(-1, pages) : random.below(pages);
        step.frontier = random.below(checkpoint->frontier() + 1);
    }
    return step;
}

// One that was not left out.
int draw_option(ProgramSim& sim, const PlanningProblem& problem) {
    std::vector<int> there;
    for (std::size_t i = 0; i < problem.options.size(); ++i)
        if (!problem.left_out[i]) there.push_back(static_cast<int>(i));
    const int last = static_cast<int>(there.size()) - 1;
    return there[static_cast<std::size_t>(sim.random.percent(85) ? last : sim.random.below(last + 1))];
}

// Mostly one that moves something, so that there is something to copy.
Degradation draw_listed(ProgramSim& sim, std::span<const Degradation> listed) {
    for (int i = 0; i < 4; ++i) {
        const Degradation& step = listed[static_cast<std::size_t>(sim.random.below(static_cast<int>(listed.size())))];
        if (step.kind == DegradationKind::kPagesToHost || step.kind == DegradationKind::kImageToHost) return step;
    }
    return listed[static_cast<std::size_t>(sim.random.below(static_cast<int>(listed.size())))];
}

// Down to a target that can be carried out, or as far as it goes.
TargetAssessment walk(ProgramSim& sim, Planning& planning, TargetId target) {
    TargetAssessment assessed = planning.assess(target);
    const int whim = sim.random.below(8);
    for (int i = 0; i < kMostSteps; ++i) {
        const auto listed = planning.list(target);
        const bool own = listed.empty() || sim.random.percent(20);
        if (assessed.feasible() && i >= whim) break;
        if (listed.empty() && i >= whim) break;
        const Degradation step = own ? planning.draw_step() : draw_listed(sim, listed);
        const auto next = planning.degrade(target, {&step, 1});
        if (!next && !own) throw SimFailure("a listed step is refused");
        if (!next) continue;
        target = *next;
        assessed = planning.assess(target);
    }
    planning.seal(target, assessed);
    return assessed;
}

// Down to the first target that copies something and can be carried out, if there is one.
bool plan_a_copy(ProgramSim& sim, PlanningProblem problem) {
    constexpr int kMostTries = 12;
    Planning planning(sim, problem);
    if (!planning.open()) return false;
    const int option = draw_option(sim, problem);
    TargetId target = planning.identity(option);
    for (int i = 0; i < kMostTries; ++i) {
        const Degradation step = planning.draw_step();
        const auto next = planning.degrade(target, {&step, 1});
        if (!next) continue;
        target = *next;
        const TargetAssessment assessed = planning.assess(target);
        if (assessed.status != TargetStatus::kNeedsTransfer) continue;
        planning.seal(target, assessed);
        return true;
    }
    return false;
}

// What comes between a plan and its start, and moves no revision: its sequence computes, or a copy of somebody begins and is
// cancelled, and holds what it has taken until the engine has ended it.
void disturb(ProgramSim& sim, const Publication& publication) {
    if (sim.random.percent(55) && go_on_with_published(sim, publication)) return;
    sim.begin(DrawnOperation::kStartCopy);
    start_checkpoint_copy(sim, sim.random.percent(70) ? Tier::kDevice : Tier::kHost);
    if (sim.random.percent(20)) return;
    sim.begin(DrawnOperation::kCancelCopies);
    cancel_checkpoint_copies(sim);
}

// A session from its opening to a sealed plan, the last of those that wait; whether it copies anything. None: nothing is
// sealed.
std::optional<bool> plan_once(ProgramSim& sim) {
    PlanningProblem problem = draw_problem(sim);
    sim.tell("plan with %zu options of kind %zu", problem.options.size(), problem.options.front().index());
    Planning planning(sim, problem);
    if (!planning.open()) return std::nullopt;
    const int option = draw_option(sim, problem);
    const TargetId start = sim.random.percent(10) ? planning.maximal(option) : planning.identity(option);
    constexpr int kRecoveryPercent = 40;
    if (sim.random.percent(kRecoveryPercent)) planning.compare_baseline(option);
    const TargetAssessment sealed = walk(sim, planning, start);
    if (sim.random.percent(kRecoveryPercent)) planning.compare_recoveries();
    if (!sealed.feasible()) return std::nullopt;
    return sealed.status == TargetStatus::kNeedsTransfer;
}

}  // namespace

void plan_transition(ProgramSim& sim) {
    constexpr int kMostProblems = 4;
    sim.count_done();
    // Until there is something to start, for which something has to be copied, mostly.
    for (int i = 0; i < kMostProblems; ++i) {
        const auto copies = plan_once(sim);
        if (!copies) continue;
        const bool admits = std::holds_alternative<AdmissionPublication>(sim.plans.back().plan.publication);
        if (!sim.random.percent(*copies ? 90 : admits ? 60 : 40)) continue;
        WaitingPlan waiting = std::move(sim.plans.back());
        sim.plans.pop_back();
        if (sim.random.percent(admits ? 10 : 25)) disturb(sim, waiting.plan.publication);
        return begin_transition(sim, std::move(waiting));
    }
}

void overtake_publication(ProgramSim& sim) {
    constexpr int kMostProblems = 6;
    sim.count_done();
    for (int i = 0; i < kMostProblems; ++i) {
        if (!plan_a_copy(sim, draw_publication(sim))) continue;
        WaitingPlan waiting = std::move(sim.plans.back());
        sim.plans.pop_back();
        const Publication publication = waiting.plan.publication;
        start_plan(sim, std::move(waiting));
        return overtake(sim, publication);
    }
}

void exhaust_session(ProgramSim& sim) {
    PlanningProblem problem;
    problem.options.emplace_back();  // no publication
    sim.tell("exhaust a session");
    sim.count_done();
    Planning planning(sim, problem);
    if (!planning.open()) return;
    std::vector<TargetId> targets{planning.identity(0)};
    for (int i = 0; i < 3 * kMostTargets; ++i) {
        const TargetId from = targets[static_cast<std::size_t>(sim.random.below(static_cast<int>(targets.size())))];
        const Degradation steps[] = {planning.draw_step(), planning.draw_step()};
        ModelTarget target = planning.target_of(from);
        if (step_down(sim, problem, target, steps[0]) && !sim.random.percent(5)) continue;
        if (const auto made = planning.degrade(from, std::span(steps).first(sim.random.percent(90) ? 1 : 2)))
            targets.push_back(*made);
    }
}

void ask_old_session(ProgramSim& sim) {
    sim.tell("ask an old session");
    Expected expected = sim.transaction_open();
    const auto then = static_cast<std::int64_t>(sim.session.revision());
    const auto now = static_cast<std::int64_t>(sim.model.revision);
    if (!expected && then != now) expected = Refusal{kStaleRevision, then, now};
    if (!expected) {
        // Still good, unless its copies have gone on; a target of another opening is not.
        const TargetId other{sim.last_target.value + (Key{1} << 40)};
        sim.count_done();
        if (sim.session.assess(other).has_value()) throw SimFailure("a target of another opening is assessed");
        return;
    }
    sim.attempt(expected, [&] { return sim.session.assess(sim.last_target); });
}

}  // namespace ninfer::sim
