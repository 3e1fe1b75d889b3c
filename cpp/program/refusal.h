#pragma once

// An expected "no" of the program: what was refused, with the two values that decided it. Nothing has changed.

#include <cstdint>
#include <string>
#include <string_view>

namespace ninfer {

enum class RefusalKind : std::uint8_t {
    kStaleHandle,       // wanted: the handle, found: the slot's current generation
    kNoLane,            // wanted: lanes in use + 1, found: lanes
    kNoPages,           // wanted: pages needed, found: pages free
    kOverContext,       // wanted: tokens, found: the largest context
    kOverReservation,   // wanted: tokens after the change, found: tokens reserved for the sequence
    kNothingToCompute,  // wanted: at least 1 uncomputed token, found: how many there are
    kNotOneUncomputed,  // decode needs exactly 1 uncomputed token; found: how many there are
    kBatchSize,         // wanted: rows, found: the largest batch
    kPendingBatch,      // a batch waits for commit or abort
    kNoPendingBatch,    // commit or abort without one; wanted: batch id, found: the id that is pending or 0
    kAcceptedCount,     // wanted: accepted of a row or rows given, found: the largest legal value
    kTokenId,           // wanted: token id, found: vocabulary size
    kDuplicateRow,      // the same sequence twice in one batch
};

std::string_view to_string(RefusalKind kind) noexcept;

struct Refusal {
    RefusalKind kind;
    std::int64_t wanted = 0;
    std::int64_t found = 0;

    std::string message() const;
};

}  // namespace ninfer
