#include "cpp/program/refusal.h"

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
    }
    return "unknown";
}

std::string Refusal::message() const {
    return std::string(to_string(kind)) + ": wanted " + std::to_string(wanted) + ", found " + std::to_string(found);
}

}  // namespace ninfer
