#include "cpp/program/checkpoint.h"

namespace ninfer {

std::string_view to_string(CheckpointKind kind) noexcept {
    switch (kind) {
        case CheckpointKind::kSessionEndpoint:
            return "session_endpoint";
        case CheckpointKind::kTurnClosure:
            return "turn_closure";
        case CheckpointKind::kResponseReplay:
            return "response_replay";
        case CheckpointKind::kLongAnchor:
            return "long_anchor";
        case CheckpointKind::kSharedStablePrefix:
            return "shared_stable_prefix";
    }
    return "unknown";
}

std::string_view to_string(OwnerRole role) noexcept {
    switch (role) {
        case OwnerRole::kActive:
            return "active";
        case OwnerRole::kPrivate:
            return "private";
        case OwnerRole::kShared:
            return "shared";
    }
    return "unknown";
}

}  // namespace ninfer
