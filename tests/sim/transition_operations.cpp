#include <algorithm>

#include "cpp/program/context_transaction.h"
#include "tests/sim/placement_operations.h"
#include "tests/sim/planning_operations.h"
#include "tests/sim/planning_problem.h"
#include "tests/sim/program_checker.h"
#include "tests/sim/sequence_operations.h"
#include "tests/sim/transition_coverage.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

// Now, whatever was protected when the plan was made.
std::vector<OwnerHandle> draw_protected(ProgramSim& sim) {
    std::vector<OwnerHandle> owners;
    for (const auto& [key, owner] : sim.model.owners)
        if (sim.random.percent(4)) owners.push_back(OwnerHandle{key});
    if (sim.random.percent(3))
        owners.push_back(OwnerHandle{sim.draw_owner([](Key, const OwnerRecord&) { return false; })});
    return owners;
}

Expected touches_protected(const ProgramSim& sim, const WaitingPlan& waiting, std::span<const OwnerHandle> owners) {
    for (const OwnerHandle owner : owners)
        if (const Expected no = sim.no_owner(owner.value)) return no;
    for (const CheckpointHandle checkpoint : waiting.plan.checkpoints) {
        const bool is_source = checkpoint.value == waiting.need.source;
        if (is_source && !waiting.need.takes_owner && !waiting.target.wants.contains(checkpoint.value)) continue;
        const OwnerHandle owner{sim.model.checkpoints.at(checkpoint.value).owner};
        if (std::ranges::find(owners, owner) == owners.end()) continue;
        return Refusal{kProtected, static_cast<std::int64_t>(owner.value), static_cast<std::int64_t>(checkpoint.value)};
    }
    return {};
}

Expected no_start(const ProgramSim& sim, const WaitingPlan& waiting, std::span<const OwnerHandle> protected_owners,
                  ModelProjection& projection) {
    if (const Expected no = not_startable(sim, waiting.need, waiting.target)) return no;
    const auto planned = static_cast<std::int64_t>(waiting.revision);
    const auto now = static_cast<std::int64_t>(sim.model.revision);
    if (planned != now) return Refusal{kStaleRevision, planned, now};
    if (const Expected no = touches_protected(sim, waiting, protected_owners)) return no;
    const Publication& publication = waiting.plan.publication;
    if (const Expected no = not_alone(sim, publication)) return no;
    if (const Expected no = not_placed(sim, publication)) return no;
    ModelNeed need;
    if (const Expected no = find_need(sim, publication, need)) return no;
    if (need.computed != waiting.need.computed || need.room != waiting.need.room)
        return Refusal{kStaleRevision, planned, now};
    projection = project(sim.model, waiting.need, waiting.target);
    if (const Expected no = does_not_fit(sim, projection)) return no;
    if (projection.pinned) return Refusal{kPinned, 0, 1};
    return {};
}

// --- names ----------------------------------------------------------------------------------------------------------

// Shortened checkpoints have been replaced: the model learns how they are called now.
void rename_shortened(ProgramSim& sim, std::span<const ShortenedCheckpoint> shortened) {
    ContextModel& model = sim.model;
    ModelTransition& transition = *model.transition;
    for (const ShortenedCheckpoint& item : shortened) {
        const Key before = item.before.value;
        const auto found = transition.now.find(before);
        if (found == transition.now.end()) throw SimFailure("a checkpoint is shortened that is not in the plan");
        if (found->second != before) continue;
        found->second = item.after.value;
        CheckpointRecord record = model.checkpoints.at(before);
        expect_equal(std::int64_t{record.frontier()}, item.frontier, "frontier of a shortened checkpoint");
        model.checkpoints.erase(before);
        std::ranges::replace(model.owners.at(record.owner).checkpoints, before, item.after.value);
        model.checkpoints.emplace(item.after.value, std::move(record));
    }
}

template <typename Tag>
void expect_same_handles(std::vector<Key> expected, const std::vector<Handle<Tag>>& found, const char* what) {
    std::vector<Key> keys;
    for (const Handle<Tag> handle : found) keys.push_back(handle.value);
    std::ranges::sort(keys);
    std::ranges::sort(expected);
    if (keys != expected) throw SimFailure(std::string(what) + ": not those that were expected");
}

// --- publication ----------------------------------------------------------------------------------------------------

// Each returns whether it has changed something for good.
bool publish(ProgramSim& sim, ModelTransition& transition, const AdmissionPublication& admission,
             const ResourceResult& result) {
    ContextModel& model = sim.model;
    if (result.sequence == SequenceHandle{}) throw SimFailure("an admission without a sequence");
    SequenceRecord sequence{.reserved = static_cast<int>(admission.request.tokens),
                            .computed = transition.need.frontier,
                            .tokens = transition.source_tokens,
                            .salt = admission.request.header.salt.empty() ? 0 : 1};
    sequence.tokens.resize(static_cast<std::size_t>(sequence.computed));
    sequence.view = std::exchange(model.transition_view, {});
    sequence.image = std::exchange(model.transition_image, 0);
    sequence.owner = transition.source_owner;
    if (!transition.need.takes_owner) {
        sequence.owner = sim.state->sequences.at(result.sequence).owner.value;
        model.owners.emplace(sequence.owner, OwnerRecord{});
    } else {
        sequence.takeover = {.taken = true,
                             .consumed = transition.need.consumes,
                             .kind = transition.source_kind,
                             .start = transition.need.frontier};
    }
    model.sequences.emplace(result.sequence.value, sequence);
    if (transition.need.source == 0) return true;
    sim.count(transition.need.consumes ? ProgramSituation::kConsumed : ProgramSituation::kContinued);
    if (admission.candidate.truncated) sim.count(ProgramSituation::kTruncated);
    return true;
}

bool is_as_planned(const ProgramSim& sim, const ModelTransition& transition, Key sequence) {
    const SequenceRecord* record = sim.find_sequence(sequence);
    return record != nullptr && record->computed == transition.need.computed;
}

bool publish(ProgramSim& sim, ModelTransition& transition, const CapturePublication& publication,
             const ResourceResult& result) {
    const Key key = publication.sequence.value;
    const bool captures = is_as_planned(sim, transition, key) && !no_capture(sim, key, publication.request.image_tier);
    expect_equal(captures, result.captured != CheckpointHandle{}, "whether a capture was published");
    expect_equal(captures, !result.skipped.has_value(), "whether a capture was skipped");
    sim.count(captures ? ProgramSituation::kCaptured : ProgramSituation::kCaptureSkipped);
    return captures && do_capture(sim, key, publication.request, result.captured.value);
}

bool publish(ProgramSim& sim, ModelTransition& transition, const FinishPublication& publication,
             const ResourceResult& result) {
    const Key key = publication.sequence.value;
    const bool finishes = is_as_planned(sim, transition, key) && !no_finish(sim, key, publication.request.image_tier);
    expect_equal(finishes, result.finished != OwnerHandle{}, "whether a finish was published");
    expect_equal(finishes, !result.skipped.has_value(), "whether a finish was skipped");
    sim.count(finishes ? ProgramSituation::kFinished : ProgramSituation::kFinishSkipped);
    if (!finishes) return false;
    const Key endpoint = sim.state->owners.find(result.finished).value()->checkpoints.back().value;
    do_finish(sim, key, publication.request, result.finished.value, endpoint);
    return true;
}

bool publish(ProgramSim& sim, ModelTransition&, const NoPublication&, const ResourceResult&) {
    sim.count(ProgramSituation::kOnlyChanged);
    return false;
}

// --- the end --------------------------------------------------------------------------------------------------------

void expect_placements(const ProgramSim& sim, const ModelTransition& transition, const ResourceResult& result) {
    const auto remaining = std::ranges::count_if(transition.now, [](const auto& item) { return item.second != 0; });
    expect_equal(remaining, std::ssize(result.placements), "placements of a result");
    for (const CheckpointPlacement& item : result.placements) {
        const CheckpointRecord* record = sim.find_checkpoint(item.checkpoint.value);
        if (record == nullptr) throw SimFailure("a placement of a checkpoint that is gone");
        const int pages = static_cast<int>(record->view.pages.size());
        int on_host = 0;
        for (const PageKey page : record->view.pages) on_host += sim.model.pages.at(page).on_host ? 1 : 0;
        expect_equal(std::int64_t{pages}, item.placement.pages, "pages of a placement");
        expect_equal(std::int64_t{sim.model.on_device(record->view, pages)}, item.placement.pages_on_device,
                     "pages of a placement on Device");
        expect_equal(std::int64_t{on_host}, item.placement.pages_on_host, "pages of a placement on Host");
        if (record->image == 0) continue;
        const ImageRecord& image = sim.model.images.at(record->image);
        expect_equal(image.on_device, item.placement.image_on_device, "image of a placement on Device");
        expect_equal(image.on_host, item.placement.image_on_host, "image of a placement on Host");
    }
}

bool operator==(const ShortenedCheckpoint& left, const std::pair<Key, int>& right) {
    return left.before.value == right.first && left.frontier == right.second;
}

void end_transition(ProgramSim& sim, const ResourceResult& result) {
    ContextModel& model = sim.model;
    ModelTransition transition = std::move(*model.transition);
    model.transition.reset();
    expect_equal(static_cast<int>(transition.end), static_cast<int>(result.end), "end of a transition");
    expect_placements(sim, transition, result);
    bool changed = transition.changed || transition.changed_besides;
    if (transition.phase == ModelPhase::kCommitted)
        changed = std::visit([&](const auto& one) { return publish(sim, transition, one, result); },
                             transition.publication) ||
                  changed;
    std::vector<Key> removed;
    for (const auto& [key, now] : transition.now)
        if (now == 0) removed.push_back(key);
    expect_same_handles(removed, result.removed, "removed checkpoints");
    expect_same_handles(transition.owners_gone, result.owners_gone, "owners that are gone");
    if (transition.shortened.size() != result.shortened.size()) throw SimFailure("other checkpoints are shortened");
    for (const auto& item : transition.shortened)
        if (std::ranges::none_of(result.shortened, [&](const auto& found) { return found == item; }))
            throw SimFailure("a shortened checkpoint is not named");
    const ResourceAxes peak = larger_of(transition.peak, model.axes());
    if (result.used != model.axes()) throw SimFailure("a result tells another use");
    if (result.peak != peak)
        throw SimFailure("peak: expected " + std::to_string(peak.device_pages) + " pages, " +
                         std::to_string(peak.host_blocks) + " blocks, found " +
                         std::to_string(result.peak.device_pages) + ", " + std::to_string(result.peak.host_blocks));
    model.revision += changed ? 1 : 0;
    expect_equal(changed, result.changed, "whether a transition has changed anything");
    expect_equal(model.revision, result.revision, "revision of a result");
    count_ways(sim, transition);
}

// What the call that just came back has done.
void follow(ProgramSim& sim, const std::optional<ResourceResult>& result) {
    if (result)
        rename_shortened(sim, result->shortened);
    else if (sim.state->transaction != nullptr)
        rename_shortened(sim, sim.state->transaction->shortened);
    expect_equal(sim.model.transition->ended(), result.has_value(), "whether a transition has ended");
    if (result) end_transition(sim, *result);
}

std::optional<ResourceResult> advance_until_it_waits(ContextState& state) {
    auto result = advance_transaction(state);
    while (!result && state.transaction != nullptr && !transaction_waits(state)) result = advance_transaction(state);
    return result;
}

// Some phases are short, and rounds that come late are seldom reached: where one is cancelled is decided beforehand.
void draw_fate(ProgramSim& sim) {
    constexpr int kCancelledPercent = 50;
    ModelTransition& transition = *sim.model.transition;
    if (!sim.random.percent(kCancelledPercent)) return;
    std::vector<std::pair<ModelPhase, int>> fates{{ModelPhase::kReleases, 0}, {ModelPhase::kPublication, 0}};
    for (int round = 0; round < kRounds; ++round) {
        for (int times = 0; times <= round; ++times)
            fates.insert(fates.end(), {{ModelPhase::kPreparation, round}, {ModelPhase::kPublication, round}});
        if (transition.has_copies(round)) fates.insert(fates.end(), 3, {ModelPhase::kInFlight, round});
    }
    transition.fate = fates[static_cast<std::size_t>(sim.random.below(static_cast<int>(fates.size())))];
}

void meet_fate(ProgramSim& sim) {
    if (!sim.model.transition) return;
    constexpr int kTooLatePercent = 10;
    const ModelTransition& transition = *sim.model.transition;
    const bool too_late = transition.phase == ModelPhase::kDraining && sim.random.percent(kTooLatePercent);
    if (!too_late && transition.fate != std::pair(transition.phase, transition.round)) return;
    sim.begin(DrawnOperation::kCancel);
    cancel_plan(sim);
}

void go_on(ProgramSim& sim, bool one_step) {
    sim.count_done();
    // The later rounds have few copies, and many transitions never come to them.
    const bool is_late = sim.model.transition && sim.model.transition->round > 0;
    sim.engine->set_fail_percent(is_late ? sim.fail_percent * 3 / 2 : sim.fail_percent);
    auto result = one_step ? advance_transaction(*sim.state) : advance_until_it_waits(*sim.state);
    sim.engine->set_fail_percent(sim.fail_percent);
    if (!sim.model.transition) {
        if (result) throw SimFailure("a result of a transition that is not open");
        return;
    }
    const bool aborts = sim.model.transition->phase == ModelPhase::kDraining;
    if (one_step)
        step_transition(sim.model, sim.engine);
    else
        advance_transition(sim.model, sim.engine);
    if (!aborts) count_abort(sim);
    follow(sim, result);
}

// Until it has ended, one phase after the other.
void carry_through(ProgramSim& sim) {
    constexpr int kMostTurns = 200;
    for (int i = 0; i < kMostTurns && sim.model.transition; ++i) {
        sim.begin(DrawnOperation::kPoll);
        poll_program_copies(sim);
        check_program(sim);
        sim.begin(DrawnOperation::kStep);
        sim.tell("step");
        go_on(sim, true);
        meet_fate(sim);
        check_program(sim);
    }
}

}  // namespace

bool go_on_with_published(ProgramSim& sim, const Publication& publication) {
    SequenceHandle sequence;
    if (const auto* capture = std::get_if<CapturePublication>(&publication)) sequence = capture->sequence;
    if (const auto* finish = std::get_if<FinishPublication>(&publication)) sequence = finish->sequence;
    const SequenceRecord* record = sim.find_sequence(sequence.value);
    if (record == nullptr || !can_compute(sim, *record)) return false;
    sim.begin(DrawnOperation::kUnit);
    run_sequence_unit(sim, sequence.value);
    return true;
}

void start_plan(ProgramSim& sim, WaitingPlan waiting) {
    sim.tell("start a plan of revision %llu", static_cast<unsigned long long>(waiting.revision));
    sim.begin(PartOperation::kStart);
    ModelProjection projection;
    const std::vector<OwnerHandle> owners = draw_protected(sim);
    const Expected expected = no_start(sim, waiting, owners, projection);
    if (expected && expected->kind == kStaleRevision) sim.count(ProgramSituation::kStalePlan);
    const bool may_be_pinned = !expected && sim.model.any_pin();
    const Publication publication = waiting.plan.publication;
    const auto started = sim.attempt(
        expected, [&] { return start_transaction(*sim.state, std::move(waiting.plan), owners); }, may_be_pinned);
    if (!started) return;
    sim.model.transition = decide(sim.model, waiting.need, waiting.target);
    sim.model.transition->publication = publication;
    if (!projection.copies()) advance_transition(sim.model, sim.engine);
    if (started->has_value()) sim.count(ProgramSituation::kAtOnce);
    follow(sim, *started);
}

void begin_transition(ProgramSim& sim, WaitingPlan waiting) {
    const Publication publication = waiting.plan.publication;
    start_plan(sim, std::move(waiting));
    constexpr int kTooLatePercent = 15;
    constexpr int kThroughPercent = 50;
    if (!sim.model.transition) {
        sim.begin(DrawnOperation::kCancel);
        if (sim.random.percent(kTooLatePercent)) cancel_plan(sim);
        return;
    }
    draw_fate(sim);
    if (sim.random.percent(60)) go_on_with_published(sim, publication);
    meet_fate(sim);
    if (sim.random.percent(kThroughPercent)) carry_through(sim);
}

void overtake(ProgramSim& sim, const Publication& publication) {
    if (sim.model.transition && go_on_with_published(sim, publication)) carry_through(sim);
}

void start_plan(ProgramSim& sim) {
    sim.count_done();
    if (sim.plans.empty()) return;
    const int index = sim.random.below(static_cast<int>(sim.plans.size()));
    WaitingPlan waiting = std::move(sim.plans[static_cast<std::size_t>(index)]);
    sim.plans.erase(sim.plans.begin() + index);
    begin_transition(sim, std::move(waiting));
}

void advance_plan(ProgramSim& sim) {
    sim.tell("advance");
    go_on(sim, false);
    meet_fate(sim);
}

void step_plan(ProgramSim& sim) {
    if (sim.model.transition && sim.random.percent(60)) {
        const Publication publication = sim.model.transition->publication;
        go_on_with_published(sim, publication);
    }
    sim.begin(DrawnOperation::kStep);
    sim.tell("step");
    go_on(sim, true);
    meet_fate(sim);
}

void cancel_plan(ProgramSim& sim) {
    sim.tell("cancel");
    const bool draining = sim.model.transition && sim.model.transition->phase == ModelPhase::kDraining;
    const bool expected = sim.model.transition && !draining;
    expect_equal(expected, cancel_transaction(*sim.state), "whether a transition can be cancelled");
    sim.count_done();
    if (expected) sim.model.transition->cancelled = true;
    if (draining) sim.count(ProgramSituation::kCancelledWhileDraining);
    if (!sim.model.transition) sim.count(ProgramSituation::kCancelledNothing);
}

}  // namespace ninfer::sim
