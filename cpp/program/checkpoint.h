#pragma once

// A checkpoint: everything that is needed to continue at a frontier, immutable once published.
//
// Life of a checkpoint: 1. captured from an active sequence at its computed frontier (or made of the sequence itself when
// that finishes): ledger, address space and state image are frozen there; 2. published in an owner: identity, frontier
// and coverage never change again, only where its bytes lie; one whose image goes to Host at once is published, and can
// be used, when that copy is there, and removed if it fails; 3. its pages and its image move between Device and Host or
// lose a redundant replica, never the last one; 4. a sequence starts from it: a retained source is shared (Fork), a
// consumed one becomes the sequence (Move); 5. deleted, alone or with its owner: what nobody else holds is given back.

#include <cstdint>
#include <string_view>

#include "cpp/program/ledger_store.h"
#include "cpp/program/owner.h"
#include "cpp/state/paged_kv_store.h"
#include "cpp/state/state_image_store.h"

namespace ninfer {

// What a checkpoint is for. Frontiers of turn closures and response replays lie before anything a client may rewrite.
enum class CheckpointKind : std::uint8_t {
    kSessionEndpoint,
    kTurnClosure,
    kResponseReplay,
    kLongAnchor,
    kSharedStablePrefix,
};

inline constexpr std::int64_t kCheckpointKinds = 5;

std::string_view to_string(CheckpointKind kind) noexcept;

struct Checkpoint {
    OwnerHandle owner;
    CheckpointKind kind = CheckpointKind::kLongAnchor;
    std::int64_t frontier = 0;  // tokens
    LedgerId ledger;
    SpaceId kv;
    ImageId image;                 // none for models without recurrent layers, and while `awaits_image`
    bool awaits_image = false;     // its image is being copied to Host
    std::int32_t open_copies = 0;  // of its pages and its image between the tiers, that image included
    std::int32_t copies_done = 0;  // of the open transfer
};

// Where a checkpoint's bytes lie at one moment.
struct CheckpointSummary {
    CheckpointKind kind = CheckpointKind::kLongAnchor;
    OwnerHandle owner;
    std::int64_t frontier = 0;
    std::int64_t pages = 0;
    std::int64_t pages_on_device = 0;
    std::int64_t pages_on_host = 0;
    std::int64_t pages_exclusive = 0;  // that no other checkpoint or sequence sees
    bool has_image = false;
    bool image_on_device = false;
    bool image_on_host = false;
    std::int64_t open_copies = 0;
    bool valid = false;         // it has everything, wherever it lies
    bool device_ready = false;  // everything is on Device
};

}  // namespace ninfer
