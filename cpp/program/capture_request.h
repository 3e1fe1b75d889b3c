#pragma once

// What is to become of an active sequence's state at its computed frontier.

#include "cpp/program/checkpoint.h"
#include "cpp/state/tier.h"

namespace ninfer {

struct CaptureRequest {
    CheckpointKind kind = CheckpointKind::kLongAnchor;
    Tier image_tier = Tier::kDevice;  // Host: the image is copied there at once and takes no checkpoint slot
    bool own = true;                  // joins the sequence's owner; else it gets a shared owner of its own
};

struct FinishRequest {
    CheckpointKind kind = CheckpointKind::kSessionEndpoint;
    Tier image_tier = Tier::kDevice;
};

}  // namespace ninfer
