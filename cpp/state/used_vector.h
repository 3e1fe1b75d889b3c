#pragma once

// What is used of the fixed capacity (rules P1 to P3 of docs/design/state_stores.md), in units of allocation. Destinations
// of open copies count; nothing counts twice; no axis makes up for another.

#include <cstdint>

namespace ninfer {

struct UsedVector {
    std::int64_t device_pages = 0;
    std::int64_t device_pages_reserved = 0;  // promised to active address spaces, not allocated yet
    std::int64_t image_slots_active = 0;
    std::int64_t image_slots_checkpoint = 0;  // of frozen images
    std::int64_t host_blocks = 0;

    bool operator==(const UsedVector&) const = default;
};

struct CapacityVector {
    std::int64_t device_pages = 0;  // bounds device_pages + device_pages_reserved
    std::int64_t image_slots_active = 0;
    std::int64_t image_slots_checkpoint = 0;
    std::int64_t host_blocks = 0;

    bool operator==(const CapacityVector&) const = default;
};

}  // namespace ninfer
