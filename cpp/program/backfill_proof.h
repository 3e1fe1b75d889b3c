#pragma once

// Whether somebody may overtake the head of the queue without making it wait longer for memory: when the protected
// sequences for which the head waits have finished, the borrower still holds everything that it was promised, and all
// cache that nobody protects is released, the head's root plan fits. No estimate of time enters it.
//
// What goes is counted, and everything else that is used stays: other sequences with their captures, protected owners, what
// is condemned, what an open or cancelled copy reads, writes or has as its destination, owners with open copies. Pages that
// are shared go with the last that has them.

#include <cstdint>
#include <span>

#include "cpp/program/context_state.h"
#include "cpp/program/sequence_request.h"

namespace ninfer {

struct BackfillQuestion {
    SequenceRequest head;
    SequenceRequest borrower;
    std::span<const SequenceHandle> donors;         // active sequences whose end the head waits for
    std::span<const OwnerHandle> protected_owners;  // that stay, whatever happens
};

// Holds as long as the revision does and no copy begins: that moves no revision, but pins cache.
struct BackfillProof {
    std::uint64_t revision = 0;
    std::uint64_t copies_begun = 0;
    std::int64_t pages_needed = 0;  // by all that remain, the borrower and the head
    std::int64_t pages_total = 0;
    std::int64_t lanes_needed = 0;

    bool holds(const ContextState& state) const noexcept {
        return state.transaction == nullptr && revision == state.resource_revision &&
               copies_begun == state.copies_begun;
    }
};

// kTransactionOpen; kStaleHandle; kOverContext; kNoLane, kNoPages (wanted: what all need together, found: what there
// is).
Result<BackfillProof, Refusal> prove_backfill(const ContextState& state, const BackfillQuestion& question);

}  // namespace ninfer
