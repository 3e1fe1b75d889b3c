#pragma once

// How a transaction has ended: the complete state of its holdings, not what happened on the way.

#include <cstdint>
#include <string_view>
#include <vector>

#include "cpp/transaction/resource_projection.h"

namespace ninfer {

enum class TransactionEnd : std::uint8_t { kCommitted, kCancelled, kCopyFailed };

std::string_view to_string(TransactionEnd end) noexcept;

struct HoldingResult {
    bool removed = false;
    Holding holding;            // as it is now: a shortened one has a new space. None if it was removed
    std::int64_t frontier = 0;  // 0 if it was removed
    HoldingPlacement placement;
};

struct TransactionResult {
    TransactionEnd end = TransactionEnd::kCommitted;
    bool changed = false;                 // anything at all: the revision has to move
    std::vector<HoldingResult> holdings;  // one per holding of the plan, the source among them
    SpaceId kv;                           // of the new sequence; none without one, and after an abort
    ImageId image;
    ResourceAxes used;  // now
    ResourceAxes peak;  // measured: the most of each axis at any moment since the start
};

}  // namespace ninfer
