#include "cpp/state/refusal.h"

#include <array>

namespace ninfer {

namespace {

// In the order of RefusalKind.
constexpr std::array<std::string_view, 36> kNames = {
    "stale_handle",
    "no_lane",
    "no_pages",
    "over_context",
    "over_reservation",
    "nothing_to_compute",
    "not_one_uncomputed",
    "batch_size",
    "pending_batch",
    "no_pending_batch",
    "accepted_count",
    "token_id",
    "duplicate_row",
    "no_image_slots",
    "no_host_blocks",
    "beyond_frontier",
    "backwards",
    "not_mapped",
    "not_on_device",
    "no_replica",
    "last_replica",
    "already_there",
    "pinned",
    "shared",
    "frozen",
    "active",
    "unsettled",
    "copy_in_flight",
    "copy_failed",
    "outdated_copy",
    "stale_revision",
    "transaction_open",
    "no_targets",
    "mismatch",
    "protected",
    "not_text",
};
static_assert(static_cast<std::size_t>(RefusalKind::kNotText) + 1 == kNames.size());

}  // namespace

std::string_view to_string(RefusalKind kind) noexcept {
    const auto index = static_cast<std::size_t>(kind);
    return index < kNames.size() ? kNames[index] : "unknown";
}

std::string Refusal::message() const {
    return std::string(to_string(kind)) + ": wanted " + std::to_string(wanted) + ", found " + std::to_string(found);
}

}  // namespace ninfer
