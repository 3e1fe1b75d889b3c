#include "tests/sim/program_simulation.h"

#include <algorithm>

#include "tests/sim/placement_operations.h"
#include "tests/sim/planning_operations.h"
#include "tests/sim/planning_problem.h"
#include "tests/sim/program_checker.h"
#include "tests/sim/scope.h"
#include "tests/sim/sequence_operations.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

constexpr int kStepsPerWorld = 1000;
constexpr int kPollsToDrain = 10'000;

bool always(ProgramSim&) { return true; }
bool is_open(ProgramSim& sim) { return sim.model.transition.has_value(); }
bool computes(ProgramSim& sim) {
    return std::ranges::any_of(sim.model.sequences, [&](const auto& item) {
        return item.second.copy_failed || can_compute(sim, item.second);
    });
}
bool captures(ProgramSim& sim) {
    return std::ranges::any_of(sim.model.sequences, [&](const auto& item) {
        return !no_capture(sim, item.first, Tier::kDevice) || !no_capture(sim, item.first, Tier::kHost);
    });
}
bool finishes(ProgramSim& sim) {
    return std::ranges::any_of(sim.model.sequences, [&](const auto& item) {
        return !no_finish(sim, item.first, Tier::kDevice) || !no_finish(sim, item.first, Tier::kHost);
    });
}
bool closes(ProgramSim& sim) {
    return !is_open(sim) && std::ranges::any_of(sim.model.sequences, [&](const auto& item) {
        const SequenceRecord& sequence = item.second;
        const bool gives = sequence.takeover.taken && !sequence.has_computed();
        return gives || sequence.waits > 0 || sequence.computed == sequence.reserved;
    });
}
bool has_checkpoints(ProgramSim& sim) { return !is_open(sim) && !sim.model.checkpoints.empty(); }
bool has_many(ProgramSim& sim) { return !is_open(sim) && sim.model.checkpoints.size() > 5; }
bool has_lanes(ProgramSim& sim) { return !is_open(sim) && std::ssize(sim.model.sequences) < sim.sizes.lanes; }
bool can_open(ProgramSim& sim) { return has_lanes(sim) && has_checkpoints(sim); }
bool has_jobs(ProgramSim& sim) { return !sim.model.jobs.empty(); }
bool has_copies(ProgramSim& sim) {
    return has_jobs(sim) || !sim.model.draining.empty() || !sim.model.transition_copies.empty();
}
bool has_plans(ProgramSim& sim) { return !sim.plans.empty() && !sim.model.transition; }
bool can_plan(ProgramSim& sim) { return !not_serial(sim); }

bool can_overtake(ProgramSim& sim) {
    if (!can_plan(sim) || sim.model.free().host_blocks == 0) return false;
    const auto goes_on = [&](const auto& item) {
        return can_compute(sim, item.second) && !not_ready_to_capture(sim, item.first, false);
    };
    const auto can_move = [&](const auto& item) {
        const CheckpointRecord& checkpoint = item.second;
        return sim.model.owners.at(checkpoint.owner).role != OwnerRole::kActive && checkpoint.open_copies == 0 &&
               sim.model.on_device(checkpoint.view, static_cast<int>(checkpoint.view.pages.size())) > 0;
    };
    return std::ranges::any_of(sim.model.sequences, goes_on) && std::ranges::any_of(sim.model.checkpoints, can_move);
}
bool can_exhaust(ProgramSim& sim) { return can_plan(sim) && has_many(sim); }

using ProgramOperation = Operation<ProgramSim>;

// Refusals as the comments of cpp/program name them.
constexpr RefusalSet kOfCapture = refusals({kTransactionOpen, kStaleHandle, kCopyFailed, kUnsettled, kCopyInFlight,
                                            kBeyondFrontier, kNoImageSlots, kNoHostBlocks});
constexpr RefusalSet kOfRemoval = refusals({kTransactionOpen, kStaleHandle, kCopyInFlight, kPinned});

constexpr ProgramOperation kOperations[] = {
    {"sequence.open_root", 30, refusals({kTransactionOpen, kOverContext, kNoLane, kNoPages}), open_root_sequence,
     has_lanes},
    {"sequence.open_from", 40,
     refusals({kTransactionOpen, kStaleHandle, kCopyInFlight, kBeyondFrontier, kBackwards, kMismatch, kOverReservation,
               kOverContext, kNoLane, kActive, kShared, kNotOnDevice, kPinned, kNoPages}),
     open_sequence_from, can_open},
    {"sequence.unit", 110, refusals({kStaleHandle, kCopyFailed, kUnsettled, kCopyInFlight}), run_sequence_unit,
     computes},
    {"sequence.capture", 100, kOfCapture | refusals({kOverReservation}), capture_sequence, captures},
    {"sequence.finish", 60, kOfCapture, finish_sequence, finishes},
    {"sequence.close", 20, refusals({kTransactionOpen, kStaleHandle}), close_one_sequence, closes},
    {"checkpoint.start_copy", 70,
     refusals({kTransactionOpen, kStaleHandle, kCopyInFlight, kNoPages, kNoImageSlots, kNoHostBlocks}),
     start_checkpoint_copy, has_checkpoints},
    {"checkpoint.drop", 80,
     refusals({kTransactionOpen, kStaleHandle, kCopyInFlight, kNoReplica, kLastReplica, kPinned, kActive}),
     drop_checkpoint_replicas, has_checkpoints},
    {"checkpoint.delete", 18, kOfRemoval, delete_one_checkpoint, has_many},
    {"checkpoint.release_owner", 20, kOfRemoval | refusals({kActive}), release_one_owner, has_many},
    {"checkpoint.cancel_copies", 24, refusals({kStaleHandle}), cancel_checkpoint_copies, has_jobs},
    {"copy.poll", 160, 0, poll_program_copies, has_copies},
    {"plan.make", 480, 0, plan_transition, can_plan},
    {"plan.overtake", 400, 0, overtake_publication, can_overtake},
    {"plan.exhaust", 20, 0, exhaust_session, can_exhaust},
    {"plan.ask_old", 8, refusals({kTransactionOpen, kStaleRevision}), ask_old_session, always},
    {"plan.start", 20, 0, start_plan, has_plans},
    {"plan.advance", 12, 0, advance_plan, is_open},
    {"plan.step", 160, 0, step_plan, is_open},
    {"plan.cancel", 9, 0, cancel_plan, is_open},
    {"backfill.prove", 14, refusals({kTransactionOpen, kStaleHandle, kOverContext, kNoPages, kNoLane}), ask_backfill,
     always},
};
static_assert(std::size(kOperations) == static_cast<std::size_t>(DrawnOperation::kCount));

// Ends everything; nothing may be left.
void tear_down(ProgramSim& sim) {
    sim.stop_counting();
    if (sim.model.transition) cancel_plan(sim);
    for (int i = 0; i < kPollsToDrain && sim.model.transition; ++i) {
        poll_program_copies(sim, SIZE_MAX / 2);
        advance_plan(sim);
    }
    check_program(sim);
    for (const Key key : keys_of(sim.model.sequences)) close_one_sequence(sim, key);
    for (int i = 0; i < kPollsToDrain && has_copies(sim); ++i) poll_program_copies(sim, SIZE_MAX / 2);
    check_program(sim);
    for (const Key key : keys_of(sim.model.owners)) release_one_owner(sim, key);
    poll_program_copies(sim, 0);
    check_program(sim);
    if (!(sim.state->stores.copies().used() == UsedVector{})) throw SimFailure("something is left of an empty world");
    expect_equal(std::int64_t{0}, sim.state->stores.ledgers().ledger_count(), "ledgers of an empty world");
}

std::int64_t steps_of(std::int64_t) { return kStepsPerWorld; }

CoverageTable::Cases cases(bool faults) {
    CoverageTable::Cases all;
    all.operations = part_operations();
    for (const ProgramOperation& operation : kOperations)
        all.operations.push_back({operation.name, operation.refusals});
    all.situations = program_situations(faults);
    if (faults) return all;
    for (auto& operation : all.operations) operation.refusals &= ~bit_of(kCopyFailed);
    return all;
}

}  // namespace

int simulate_program(const SimOptions& options) {
    CoverageTable coverage(cases(options.faults));
    const Scope<ProgramSim> scope{"all", kOperations, steps_of, check_program, tear_down};
    return simulate(scope, options, coverage);
}

}  // namespace ninfer::sim
