#include "cpp/state/refusal.h"

namespace ninfer {

std::string_view to_string(RefusalKind kind) noexcept {
    switch (kind) {
        case RefusalKind::kStaleHandle:
            return "stale_handle";
        case RefusalKind::kNoLane:
            return "no_lane";
        case RefusalKind::kNoPages:
            return "no_pages";
        case RefusalKind::kOverContext:
            return "over_context";
        case RefusalKind::kOverReservation:
            return "over_reservation";
        case RefusalKind::kNothingToCompute:
            return "nothing_to_compute";
        case RefusalKind::kNotOneUncomputed:
            return "not_one_uncomputed";
        case RefusalKind::kBatchSize:
            return "batch_size";
        case RefusalKind::kPendingBatch:
            return "pending_batch";
        case RefusalKind::kNoPendingBatch:
            return "no_pending_batch";
        case RefusalKind::kAcceptedCount:
            return "accepted_count";
        case RefusalKind::kTokenId:
            return "token_id";
        case RefusalKind::kDuplicateRow:
            return "duplicate_row";
        case RefusalKind::kNoImageSlots:
            return "no_image_slots";
        case RefusalKind::kNoHostBlocks:
            return "no_host_blocks";
        case RefusalKind::kBeyondFrontier:
            return "beyond_frontier";
        case RefusalKind::kBackwards:
            return "backwards";
        case RefusalKind::kNotMapped:
            return "not_mapped";
        case RefusalKind::kNotOnDevice:
            return "not_on_device";
        case RefusalKind::kNoReplica:
            return "no_replica";
        case RefusalKind::kLastReplica:
            return "last_replica";
        case RefusalKind::kAlreadyThere:
            return "already_there";
        case RefusalKind::kPinned:
            return "pinned";
        case RefusalKind::kShared:
            return "shared";
        case RefusalKind::kFrozen:
            return "frozen";
        case RefusalKind::kActive:
            return "active";
        case RefusalKind::kUnsettled:
            return "unsettled";
        case RefusalKind::kCopyInFlight:
            return "copy_in_flight";
        case RefusalKind::kCopyFailed:
            return "copy_failed";
        case RefusalKind::kOutdatedCopy:
            return "outdated_copy";
        case RefusalKind::kStaleRevision:
            return "stale_revision";
        case RefusalKind::kMismatch:
            return "mismatch";
    }
    return "unknown";
}

std::string Refusal::message() const {
    return std::string(to_string(kind)) + ": wanted " + std::to_string(wanted) + ", found " + std::to_string(found);
}

}  // namespace ninfer
