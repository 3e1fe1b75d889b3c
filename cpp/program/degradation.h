#pragma once

// One step down for one inactive checkpoint or owner, on the way from a target to another. Steps only lead down: what a
// target does not want any more is not wanted by any target behind it.

#include <cstdint>
#include <string_view>

#include "cpp/program/owner.h"
#include "cpp/transaction/resource_axes.h"

namespace ninfer {

enum class DegradationKind : std::uint8_t {
    kDropHostPages,  // pages that are on Device too lose their Host replicas
    kDropHostImage,  // the same of the image
    kPagesToHost,    // pages from `device_pages` on leave the device: a copy where there is no Host replica
    kImageToHost,    // the same of the image
    kShorten,        // to `frontier`; only models without recurrent layers
    kDelete,         // the checkpoint
    kEvict,          // the owner with all its checkpoints
};

inline constexpr std::int64_t kDegradationKinds = 7;

// What stays complete on Device: all that a source of a new sequence may give.
constexpr bool drops_redundant(DegradationKind kind) noexcept {
    return kind == DegradationKind::kDropHostPages || kind == DegradationKind::kDropHostImage;
}

std::string_view to_string(DegradationKind kind) noexcept;

// As a session lists it, with what it can do at most; facts about the joint outcome come from assessing the target.
struct Degradation {
    DegradationKind kind = DegradationKind::kEvict;
    OwnerHandle owner = {};
    CheckpointHandle checkpoint = {};  // not of kEvict
    std::int64_t device_pages = 0;     // kPagesToHost
    std::int64_t frontier = 0;         // kShorten
    // What it gives back if nobody else wants the same, and the bytes that it copies then. Host blocks that a copy takes
    // count as negative relief.
    ResourceAxes relief = {};
    std::int64_t copied_bytes = 0;
};

}  // namespace ninfer
