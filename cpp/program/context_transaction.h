#pragma once

// Carries out sealed plans, one at a time.
//
// Life of a transition:
// 1. started: nothing else is open, revision, handles, capacities and protections hold; or it is refused. Nothing has
//    changed yet either way: it can still be cancelled before its releases. Only one that copies nothing is over within
//    the call: between its phases nobody could ask for anything;
// 2. each advance is one phase of cpp/transaction/running_transaction.h, and then its caller decides whether it goes on.
//    The owner table follows at once: a checkpoint that has gone is gone here too, with its ledger; a shortened one is
//    replaced by another;
// 3. at the commit the publication: the sequence of an admission opens, with pages, image and reservation that are all
//    there; a sequence is captured or finished;
// 4. ended, committed or aborted: the result is told once, the revision has moved by one if anything has changed.
//
// While one is open, whatever would change inactive owners or free capacity is refused with kTransactionOpen: opening,
// capturing, finishing and closing sequences, placements, removals, planning. The caller comes back at a later boundary; a
// sequence that is to end holds everything until then. Units of other sequences go on.
// Finishing, discarding, releasing and capturing without a plan are transitions of no stage: each is over within its call
// (capture.h, sequence_opening.h, checkpoint_removal.h) under the same rule, and so is a planned capture or finish that
// nobody has to make room for. One that leaves a copy on its way (an image to Host, a tail) keeps the next plan with stages
// waiting until that copy has ended.

#include <optional>
#include <span>

#include "cpp/program/context_plan.h"
#include "cpp/program/context_state.h"

namespace ninfer {

// Why no plan with stages may start now. kTransactionOpen, kCopyInFlight (a copy outside of transactions is open),
// kUnsettled (a sequence reads another one's image until its first unit).
std::optional<Refusal> check_serial(const ContextState& state);

// Uses the plan up. protected_owners: those that nobody may touch now, whatever the plan's session was told.
// Memory that runs out before the first mutation is an exception that has changed nothing; from there on,
// and in each later step, it stops the process (cpp/base/commit_scope.h). The result, if it has ended already.
// As check_serial; kStaleRevision; kStaleHandle (a protected owner); kProtected (a checkpoint of one would change, or its
// owner would be taken over; a source that stays with its owner may be read); of captures and finishes what else
// a sequence can come to without the revision: kUnsettled, kCopyInFlight, kOverReservation, and kStaleRevision if it has
// computed; what copies have taken since or pin, as RunningTransaction::start: kNoPages, kNoImageSlots, kNoHostBlocks,
// kPinned. Handles, lanes and contexts are checked too, but the revision moves before any of them.
Result<std::optional<ResourceResult>, Refusal> start_transaction(ContextState& state, ContextPlan plan,
                                                                 std::span<const OwnerHandle> protected_owners);

// One phase; while copies are open, it looks whether they have ended. Whoever polls them moves the bytes (poll_copies). The
// result, if it ends with this call; none if nothing is open.
std::optional<ResourceResult> advance_transaction(ContextState& state);
// Whether the last advance has found that a copy has to end first: the next one is of no use before a poll. False if
// nothing is open.
bool transaction_waits(const ContextState& state);
// Takes effect at the next phase boundary, which is the next advance. False if nothing is open, or it is being aborted.
bool cancel_transaction(ContextState& state);

// Ends the open one, if there is one, without telling anybody: for the end of the state.
void drain_transaction(ContextState& state);

}  // namespace ninfer
