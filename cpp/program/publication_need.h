#pragma once

// What a publication needs of the stores, and whether it can be made at all.

#include <optional>
#include <vector>

#include "cpp/program/context_state.h"
#include "cpp/transaction/resource_projection.h"

namespace ninfer {

struct PublicationNeed {
    ResourceNeed need;  // without the index of the source
    CheckpointHandle source;
    std::vector<CheckpointHandle> leaving;  // deeper ones of an owner that the new sequence takes over
    std::int64_t computed = 0;              // as in ContextPlan
    // Copies that begin when a capture or finish is published: of its image, and of the writer's tail.
    CopyWork own_to_host = {};
    CopyWork own_within_device = {};
};

// kStaleHandle; of an admission what check_source and, unless it retains, check_takeover say, and
// kCopyInFlight (the image of a deeper checkpoint of the owner that it takes over is still to come); of a
// capture or a finish what capture_room and finish_room say.
Result<PublicationNeed, Refusal> need_of(const ContextState& state, const Publication& publication);

// Why it can never be made here, with nothing else in the stores. kOverContext, kNoPages, kNoImageSlots.
std::optional<Refusal> check_alone(const ContextState& state, const Publication& publication);
// Why it cannot be made now, capacities of the stores apart: kNoLane.
std::optional<Refusal> check_place(const ContextState& state, const Publication& publication);

}  // namespace ninfer
