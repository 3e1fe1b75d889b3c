#pragma once

// Everything of a program that is not computation: the stores, who holds what of them, and the copies on their way.
// Functions over it (sequence_opening, capture, checkpoint_placement, checkpoint_removal, copy_polling) are the program's
// operations; they need no model. Each either succeeds or returns a Refusal and has changed nothing (fingerprint()).
//
// resource_revision moves once per stable change of topology, inactive placement, pins or free capacity: with the call
// that makes it; where copies make it, with the poll (or cancellation) that ends the last of them, settles a sequence or
// finds cancelled copies drained. It does not move for a
// sequence that grows inside its own reservation, nor when a copy starts, nor in the middle of an open transaction, which
// moves it once at its end.

#include <vector>

#include "cpp/program/context_stores.h"
#include "cpp/program/copy_job.h"
#include "cpp/program/open_transaction.h"
#include "cpp/program/owner_table.h"
#include "cpp/program/sequence_table.h"

namespace ninfer {

// What nobody uses any more, but an open or draining copy, or somebody's borrowed read, still pins: released by the next
// poll, finish, close or deletion that finds it free. Each of the two may be none.
struct Condemned {
    SpaceId kv;
    ImageId image;
};

struct ContextState {
    // Throws OutOfMemoryError.
    ContextState(const ContextSizes& sizes, std::unique_ptr<CopyEngine> engine)
        : max_context(sizes.max_context), stores(sizes, std::move(engine)), sequences(sizes.lanes, sizes.vocab_size) {}
    // Copies that are still open are cancelled and drained: the engine must end them when polled.
    ~ContextState();
    ContextState(const ContextState&) = delete;
    ContextState& operator=(const ContextState&) = delete;

    const std::int64_t max_context;

    ContextStores stores;
    SequenceTable sequences;
    OwnerTable owners;
    std::vector<CopyJob> jobs;  // every open copy, in the order of their starts
    std::vector<Condemned> condemned;
    std::unique_ptr<OpenTransaction> transaction;  // or none
    std::uint64_t resource_revision = 0;
    std::uint64_t copies_begun = 0;  // outside of transactions, ever

    // Why no unit of the sequence may run and nothing may be captured of it now. kCopyFailed, kUnsettled, kCopyInFlight (its
    // image is being read by a copy, perhaps by a cancelled one).
    std::optional<Refusal> not_ready(const Sequence& sequence) const;

    // Sequences, and those that have ended while a copy still reads or writes their image. So a free lane always has an
    // image slot.
    std::int64_t lanes_taken() const;
    // kNoLane.
    std::optional<Refusal> check_lane() const;

    // kTransactionOpen.
    std::optional<Refusal> check_no_transaction() const;
    // Something has changed for good outside of any transaction.
    void note_change();

    // Stores, tables, and that each space, image reference and ledger has exactly one user.
    void check_invariants() const;
    std::uint64_t fingerprint() const;
    std::size_t bookkeeping_bytes() const;
};

}  // namespace ninfer
