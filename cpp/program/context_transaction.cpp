#include "cpp/program/context_transaction.h"

#include <limits>
#include <utility>

#include "cpp/base/commit_scope.h"
#include "cpp/program/capture.h"
#include "cpp/program/checkpoint_removal.h"
#include "cpp/program/protected_owners.h"
#include "cpp/program/publication_need.h"
#include "cpp/program/sequence_opening.h"

namespace ninfer {

namespace {

// --- before ---------------------------------------------------------------------------------------------------------

std::optional<Refusal> check_handles(const ContextState& state, const ContextPlan& plan) {
    NINFER_ASSERT_EQ(plan.checkpoints.size(), plan.resources.holdings().size());
    for (std::size_t i = 0; i < plan.checkpoints.size(); ++i) {
        const auto found = state.owners.find(plan.checkpoints[i]);
        if (!found) return found.error();
        NINFER_ASSERT(found.value()->kv == plan.resources.holdings()[i].kv, "a checkpoint changed under one handle");
    }
    return std::nullopt;
}

// The source is touched if it loses a replica or does not stay with its owner; everything else that a plan names changes.
bool is_touched(const ContextPlan& plan, std::size_t index) {
    if (static_cast<std::int32_t>(index) != plan.resources.need().source) return true;
    const HoldingOutcome& outcome = plan.resources.outcomes()[index];
    if (outcome.drops_host || outcome.image != ImageOutcome::kAsIs) return true;
    return std::get<AdmissionPublication>(plan.publication).candidate.takes_owner();
}

std::optional<Refusal> check_protections(const ContextState& state, const ContextPlan& plan,
                                         std::span<const OwnerHandle> protected_owners) {
    if (const auto refusal = check_owners(state, protected_owners)) return refusal;
    for (std::size_t i = 0; i < plan.checkpoints.size(); ++i) {
        if (!is_touched(plan, i)) continue;
        const CheckpointHandle checkpoint = plan.checkpoints[i];
        if (const auto refusal = check_unprotected(state, checkpoint, protected_owners)) return refusal;
    }
    return std::nullopt;
}

std::optional<Refusal> check_plan(const ContextState& state, const ContextPlan& plan,
                                  std::span<const OwnerHandle> protected_owners) {
    const bool has_stages = !plan.checkpoints.empty() || plan.resources.need().kind != ResourceNeed::Kind::kRoom;
    if (const auto refusal = has_stages ? check_serial(state) : state.check_no_transaction()) return refusal;
    const auto planned = static_cast<std::int64_t>(plan.resources.revision());
    const auto now = static_cast<std::int64_t>(state.resource_revision);
    if (planned != now) return Refusal{RefusalKind::kStaleRevision, planned, now};
    if (const auto refusal = check_handles(state, plan)) return refusal;
    if (const auto refusal = check_protections(state, plan, protected_owners)) return refusal;
    if (const auto refusal = check_alone(state, plan.publication)) return refusal;
    if (const auto refusal = check_place(state, plan.publication)) return refusal;
    const auto need = need_of(state, plan.publication);
    if (!need) return need.error();
    // What is captured or finished has to be what was planned for; its own units move no revision.
    if (need.value().computed != plan.computed || need.value().need.room != plan.resources.need().room)
        return Refusal{RefusalKind::kStaleRevision, planned, now};
    return std::nullopt;
}

// For the sequence's counts, which may be large, and for what is told in the end.
void make_room(ContextState& state, OpenTransaction& open) {
    if (const auto* admission = std::get_if<AdmissionPublication>(&open.publication))
        state.sequences.make_room(admission->request.count_tokens);
    open.removed.reserve(open.checkpoints.size());
    open.shortened.reserve(open.checkpoints.size());
    open.owners_gone.reserve(open.checkpoints.size());
}

// --- while it runs --------------------------------------------------------------------------------------------------

// The record goes; pages and image have gone already, or to somebody else.
void remove_record(ContextState& state, OpenTransaction& open, CheckpointHandle handle) {
    const Checkpoint checkpoint = state.owners.remove(handle);
    release_ledger(state, checkpoint.ledger);
    if (!state.owners.find(checkpoint.owner)) open.owners_gone.push_back(checkpoint.owner);
    open.removed.push_back(handle);
}

// The new one comes before the old one goes, so that the owner stays.
CheckpointHandle replace_record(ContextState& state, OpenTransaction& open, CheckpointHandle handle, SpaceId kv) {
    Checkpoint shorter = state.owners.at(handle);
    shorter.frontier = state.stores.kv().find(kv).value()->frontier;
    shorter.kv = kv;
    shorter.ledger = state.stores.ledgers().fork(shorter.ledger, shorter.frontier, shorter.frontier).value();
    const CheckpointHandle after = state.owners.add(shorter);
    release_ledger(state, state.owners.remove(handle).ledger);
    open.shortened.push_back({handle, after, shorter.frontier});
    return after;
}

// Brings the owner table to what the transaction has done so far. The source is left to the publication.
void follow(ContextState& state) {
    OpenTransaction& open = *state.transaction;
    const auto holdings = open.running->holdings();
    for (std::size_t i = 0; i < holdings.size(); ++i) {
        CheckpointHandle& checkpoint = open.checkpoints[i];
        if (checkpoint == CheckpointHandle{} || static_cast<std::int32_t>(i) == open.source) continue;
        if (holdings[i].removed)
            remove_record(state, open, std::exchange(checkpoint, {}));
        else if (holdings[i].holding.kv != state.owners.at(checkpoint).kv)
            checkpoint = replace_record(state, open, checkpoint, holdings[i].holding.kv);
    }
}

// --- publication ----------------------------------------------------------------------------------------------------

void publish(ContextState& state, OpenTransaction& open, const AdmissionPublication& admission,
             ResourceResult& result) {
    const AdmissionCandidate& candidate = admission.candidate;
    const SequenceRequest& request = admission.request;
    SequenceParts parts{{}, open.running->kv(), open.running->image(), {}, candidate.frontier, {}};
    LedgerStore& ledgers = state.stores.ledgers();
    if (candidate.is_root()) {
        parts.ledger = ledgers.open(request.header, request.tokens);
    } else {
        const Checkpoint source = state.owners.at(candidate.source);
        parts.ledger = ledgers.fork(source.ledger, candidate.frontier, request.tokens).value();
        if (candidate.takes_owner()) {
            parts.owner = source.owner;
            parts.takeover = {
                .taken = true, .consumed = open.consumes, .kind = source.kind, .start = candidate.frontier};
        }
    }
    if (candidate.takes_owner())
        state.owners.set_role(parts.owner, OwnerRole::kActive);
    else
        parts.owner = state.owners.add_owner(OwnerRole::kActive);
    result.sequence = begin_sequence(state, request, parts);
    result.changed = true;
    if (!open.consumes) return;
    CheckpointHandle& source = open.checkpoints[static_cast<std::size_t>(open.source)];
    remove_record(state, open, std::exchange(source, {}));
}

// A sequence that has gone on meanwhile, or cannot be captured any more, is not: an optional capture is skipped, and the
// caller of a finish discards.
std::optional<Refusal> not_as_planned(const ContextState& state, const OpenTransaction& open, SequenceHandle sequence) {
    const auto found = state.sequences.find(sequence);
    if (!found) return found.error();
    const std::int64_t computed = found.value()->computed;
    if (computed == open.computed) return std::nullopt;
    return Refusal{RefusalKind::kBackwards, open.computed, computed};
}

void publish(ContextState& state, OpenTransaction& open, const CapturePublication& publication,
             ResourceResult& result) {
    result.skipped = not_as_planned(state, open, publication.sequence);
    if (result.skipped) return;
    if (const auto captured = capture(state, publication.sequence, publication.request))
        result.captured = captured.value();
    else
        result.skipped = captured.error();
}

void publish(ContextState& state, OpenTransaction& open, const FinishPublication& publication, ResourceResult& result) {
    result.skipped = not_as_planned(state, open, publication.sequence);
    if (result.skipped) return;
    if (const auto finished = finish(state, publication.sequence, publication.request))
        result.finished = finished.value();
    else
        result.skipped = finished.error();
}

void publish(ContextState&, OpenTransaction&, const NoPublication&, ResourceResult&) {}

ResourceResult end_transaction(ContextState& state) {
    const std::unique_ptr<OpenTransaction> open = std::move(state.transaction);
    const TransactionResult done = open->running->result();
    const std::uint64_t revision = state.resource_revision;
    ResourceResult result;
    result.end = done.end;
    result.changed = done.changed || open->changed_besides;
    if (done.end == TransactionEnd::kCommitted)
        std::visit([&](const auto& one) { publish(state, *open, one, result); }, open->publication);
    result.changed = result.changed || state.resource_revision != revision;
    for (std::size_t i = 0; i < open->checkpoints.size(); ++i)
        if (open->checkpoints[i] != CheckpointHandle{})
            result.placements.push_back({open->checkpoints[i], done.holdings[i].placement});
    result.removed = std::move(open->removed);
    result.shortened = std::move(open->shortened);
    result.owners_gone = std::move(open->owners_gone);
    result.used = axes_of(state.stores.copies().used());
    result.peak = larger_of(done.peak, result.used);
    state.resource_revision = revision + (result.changed ? 1 : 0);
    result.revision = state.resource_revision;
    return result;
}

std::optional<ResourceResult> after_steps(ContextState& state) {
    follow(state);
    if (!state.transaction->running->ended()) return std::nullopt;
    return end_transaction(state);
}

}  // namespace

std::optional<Refusal> check_serial(const ContextState& state) {
    if (const auto refusal = state.check_no_transaction()) return refusal;
    if (!state.jobs.empty()) return Refusal{RefusalKind::kCopyInFlight, 0, std::ssize(state.jobs)};
    std::int64_t unsettled = 0;
    state.sequences.for_each([&](SequenceHandle, const Sequence& sequence) {
        const bool pages_settled = !state.stores.kv().find(sequence.kv).value()->unsettled();
        const bool image_settled =
            !state.stores.has_images() || state.stores.images().find(sequence.image).value()->source == ImageId{};
        unsettled += pages_settled && image_settled ? 0 : 1;
    });
    if (unsettled > 0) return Refusal{RefusalKind::kUnsettled, 0, unsettled};
    return std::nullopt;
}

// Starting the transaction itself comes last: until then nothing is to be taken back if memory runs out.
Result<std::optional<ResourceResult>, Refusal> start_transaction(ContextState& state, ContextPlan plan,
                                                                 std::span<const OwnerHandle> protected_owners) {
    if (const auto refusal = check_plan(state, plan, protected_owners)) return *refusal;
    auto open = std::make_unique<OpenTransaction>();
    open->source = plan.resources.need().source;
    open->consumes = plan.resources.need().consumes;
    open->checkpoints = std::move(plan.checkpoints);
    open->publication = std::move(plan.publication);
    open->computed = plan.computed;
    make_room(state, *open);
    auto running =
        RunningTransaction::start(std::move(plan.resources), state.stores.state_stores(), state.resource_revision);
    if (!running) return running.error();
    open->running = std::move(running).value();
    state.transaction = std::move(open);
    if (state.transaction->running->projection().needs_copies()) return std::optional<ResourceResult>{};
    const CommitScope commit;
    state.transaction->running->advance();
    return after_steps(state);
}

std::optional<ResourceResult> advance_transaction(ContextState& state) {
    if (state.transaction == nullptr) return std::nullopt;
    const CommitScope commit;
    state.transaction->running->step();
    return after_steps(state);
}

bool transaction_waits(const ContextState& state) {
    return state.transaction != nullptr && state.transaction->running->waits();
}

bool cancel_transaction(ContextState& state) {
    return state.transaction != nullptr && state.transaction->running->cancel();
}

void drain_transaction(ContextState& state) {
    if (state.transaction == nullptr) return;
    RunningTransaction& running = *state.transaction->running;
    running.cancel();
    while (!running.ended()) {
        state.stores.copies().poll(std::numeric_limits<std::size_t>::max());
        running.advance();
    }
    state.transaction = nullptr;
}

}  // namespace ninfer
