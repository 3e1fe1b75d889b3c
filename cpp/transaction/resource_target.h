#pragma once

// What one resource decision wants: for each holding of a domain what becomes of it, and what is needed in the end. A
// target says everything that is decided and nothing that follows: Move or Fork, copies of tails, last references and
// the order of stages are derived from the joint post-state (resource_projection.h).
//
// A target is structurally legal, or it is our bug: check_target asserts.

#include <cstdint>
#include <span>

#include "cpp/transaction/resource_axes.h"

namespace ninfer {

class TargetDomain;

enum class ImageOutcome : std::uint8_t {
    kAsIs,        // wanted wherever it is
    kDeviceOnly,  // its Host replica is not wanted; it is on Device
    kHostOnly,    // its Device replica is not wanted
};

// What one holding wants. A replica stays while anybody wants it: a holding of the domain that survives, a frozen space or
// image reference outside of it, and on Device any active space. Wants of pages are beginnings of the space, so that they
// cost runs, never pages. The outcome that wants everything as it is is the identity; every other is a degradation.
struct HoldingOutcome {
    std::int64_t frontier = 0;  // tokens that it keeps; less than it has: only without recurrent layers, at least 1
    std::int32_t device_pages =
        0;                    // its first pages, which are wanted on Device where they are there; the others are not
    bool survives = true;     // else the holding goes, and wants nothing
    bool drops_host = false;  // Host replicas of its pages are not wanted where the page stays on Device
    ImageOutcome image = ImageOutcome::kAsIs;

    bool operator==(const HoldingOutcome&) const = default;
};

// What must be there when the target is reached.
struct ResourceNeed {
    static constexpr std::int32_t kNoHolding = -1;

    enum class Kind : std::uint8_t {
        kRoom,    // only `room`: a capture, a finish, or nothing at all
        kRoot,    // a new active sequence that begins empty
        kSource,  // a new active sequence that begins with the first `frontier` tokens of a holding
    };

    Kind kind = Kind::kRoom;
    bool consumes = false;             // the source goes; its bytes are continued in place where nobody else has them
    std::int32_t source = kNoHolding;  // index in the domain; its outcome is the identity, but for what it has twice
    std::int64_t frontier = 0;         // tokens; less than the source's: only without recurrent layers
    std::int64_t pages = 0;            // that the new sequence must have a place for, the shared ones included
    ResourceAxes room;                 // what must still be free after all that

    bool operator==(const ResourceNeed&) const = default;
};

// One outcome per holding of the domain.
void check_target(const TargetDomain& domain, std::span<const HoldingOutcome> outcomes, const ResourceNeed& need);

}  // namespace ninfer
