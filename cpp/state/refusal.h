#pragma once

// An expected "no" of the stores and the program: what was refused, with the two values that decided it. Nothing has
// changed.

#include <cstdint>
#include <string>
#include <string_view>

namespace ninfer {

enum class RefusalKind : std::uint8_t {
    kStaleHandle,       // wanted: the handle's generation, found: the slot's current generation
    kNoLane,            // wanted: lanes in use + 1, found: lanes
    kNoPages,           // wanted: pages needed, found: pages free
    kOverContext,       // wanted: tokens, found: the largest context
    kOverReservation,   // wanted: tokens after the change, found: tokens that mapped and reserved pages hold
    kNothingToCompute,  // wanted: at least 1 uncomputed token, found: how many there are
    kNotOneUncomputed,  // decode needs exactly 1 uncomputed token; found: how many there are
    kBatchSize,         // wanted: rows, found: the largest batch
    kPendingBatch,      // a batch waits for commit or abort
    kNoPendingBatch,    // commit or abort without one; wanted: batch id, found: the id that is pending or 0
    kAcceptedCount,     // wanted: accepted of a row or rows given, found: the largest legal value
    kTokenId,           // wanted: token id, found: vocabulary size
    kDuplicateRow,      // the same sequence twice in one batch
    kNoImageSlots,      // wanted: Device slots, found: how many are free for this use
    kNoHostBlocks,      // wanted: Host blocks, found: blocks free
    kBeyondFrontier,    // wanted: a frontier in tokens, found: the frontier of what it is taken from
    kBackwards,         // wanted: the new frontier, found: the committed one, which never moves back
    kNotMapped,         // wanted: tokens, found: tokens that have pages
    kNotOnDevice,       // wanted: pages or images needed on Device, found: how many of them are there
    kNoReplica,         // wanted: the tier (0 Device, 1 Host), found: -1
    kLastReplica,       // wanted: replicas left after the drop (1), found: 0
    kAlreadyThere,      // wanted: the tier, found: the tier
    kPinned,            // wanted: 0 pins, found: how many there are
    kShared,            // wanted: 1 holder, found: how many there are; or a private owner (its role, found: another)
    kFrozen,            // an active one is needed; wanted 1, found 0
    kActive,            // a frozen one is needed; wanted 0, found: how many active ones use it
    kUnsettled,         // a copy it waits for is still open; wanted 0, found: how many
    kCopyInFlight,      // wanted: 0 open copies of it (or 0 unfinished ones), found: how many
    kCopyFailed,        // the engine failed the copy; wanted: bytes, found: 0
    kOutdatedCopy,      // wanted: the epoch noted at the start, found: the epoch now
    kStaleRevision,     // wanted: the resource revision a plan is bound to, found: the revision now
    kTransactionOpen,   // a transition of resources is open; wanted 0, found 1
    kNoTargets,         // wanted: targets of a planning session, found: how many it may have
    kMismatch,          // an identity differs; wanted: tokens to match, found: tokens that do
    kProtected,  // a plan would touch an owner that nobody may touch now; wanted: its handle, found: the checkpoint's
    kNotText,    // wanted: text at this index of a token, found: its type (0: text at another position)
};

std::string_view to_string(RefusalKind kind) noexcept;

struct Refusal {
    RefusalKind kind;
    std::int64_t wanted = 0;
    std::int64_t found = 0;

    std::string message() const;
};

}  // namespace ninfer
