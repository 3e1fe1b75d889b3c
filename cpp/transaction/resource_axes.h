#pragma once

// Amounts on the four axes of capacity (rules P1 to P3 of docs/design/state_stores.md). Device pages are taken and reserved
// ones together: a sequence that grows inside its reservation does not change them. No axis makes up for another.

#include <algorithm>
#include <cstdint>

#include "cpp/state/used_vector.h"

namespace ninfer {

struct ResourceAxes {
    std::int64_t device_pages = 0;
    std::int64_t image_slots_active = 0;
    std::int64_t image_slots_checkpoint = 0;
    std::int64_t host_blocks = 0;

    bool operator==(const ResourceAxes&) const = default;

    ResourceAxes& operator+=(const ResourceAxes& more) {
        device_pages += more.device_pages;
        image_slots_active += more.image_slots_active;
        image_slots_checkpoint += more.image_slots_checkpoint;
        host_blocks += more.host_blocks;
        return *this;
    }
    friend ResourceAxes operator+(ResourceAxes left, const ResourceAxes& right) { return left += right; }
    friend ResourceAxes operator-(const ResourceAxes& left, const ResourceAxes& right) {
        return {left.device_pages - right.device_pages, left.image_slots_active - right.image_slots_active,
                left.image_slots_checkpoint - right.image_slots_checkpoint, left.host_blocks - right.host_blocks};
    }

    bool fits(const ResourceAxes& capacity) const {
        return device_pages <= capacity.device_pages && image_slots_active <= capacity.image_slots_active &&
               image_slots_checkpoint <= capacity.image_slots_checkpoint && host_blocks <= capacity.host_blocks;
    }
};

inline ResourceAxes axes_of(const UsedVector& used) {
    return {used.device_pages + used.device_pages_reserved, used.image_slots_active, used.image_slots_checkpoint,
            used.host_blocks};
}

inline ResourceAxes axes_of(const CapacityVector& capacity) {
    return {capacity.device_pages, capacity.image_slots_active, capacity.image_slots_checkpoint, capacity.host_blocks};
}

// The larger of the two on each axis.
inline ResourceAxes larger_of(const ResourceAxes& left, const ResourceAxes& right) {
    return {std::max(left.device_pages, right.device_pages),
            std::max(left.image_slots_active, right.image_slots_active),
            std::max(left.image_slots_checkpoint, right.image_slots_checkpoint),
            std::max(left.host_blocks, right.host_blocks)};
}

// By how much `used` exceeds the capacity, per axis: 0 where it fits.
inline ResourceAxes excess_over(const ResourceAxes& used, const ResourceAxes& capacity) {
    return larger_of(used - capacity, {});
}

}  // namespace ninfer
