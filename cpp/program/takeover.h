#pragma once

// What a sequence has taken over with the owner from whose checkpoint it started. Until it has computed a token it can
// give that back: closed before, it costs nobody a conversation (gives_back in capture.h).

#include "cpp/program/checkpoint.h"

namespace ninfer {

struct Takeover {
    bool taken = false;                                 // else the sequence began with an owner of its own
    bool consumed = false;                              // the source went; else it is still in the owner
    CheckpointKind kind = CheckpointKind::kLongAnchor;  // the source's
    std::int64_t start = 0;                             // tokens that the sequence began with
    // A frozen beginning, all of the source's, while the sequence's own tail is not there yet. Else none.
    SpaceId kv = {};
    LedgerId ledger = {};

    bool holds_source() const noexcept { return kv != SpaceId{}; }
};

}  // namespace ninfer
