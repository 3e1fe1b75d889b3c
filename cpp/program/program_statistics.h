#pragma once

#include <cstdint>

#include "cpp/state/used_vector.h"

namespace ninfer {

// What a program holds at one moment.
struct ProgramStatistics {
    std::int64_t pages_total = 0;
    std::int64_t pages_free = 0;  // neither in use nor reserved
    std::int64_t lanes_total = 0;
    std::int64_t lanes_open = 0;
    std::int64_t state_image_bytes = 0;
    std::int64_t page_bytes = 0;
    std::int64_t host_block_bytes = 0;
    std::int64_t weight_bytes = 0;
    std::int64_t scratch_peak_bytes = 0;
    std::int64_t tokens_computed = 0;
    UsedVector used;
    CapacityVector capacity;
    std::int64_t owners = 0;  // active ones included
    std::int64_t checkpoints = 0;
    std::int64_t copies_open = 0;
    std::int64_t copies_draining = 0;
    std::int64_t condemned = 0;          // what is gone and still pinned: spaces with images, given back later
    std::int64_t bookkeeping_bytes = 0;  // of pages, images, tiers, ledgers and copies
    std::uint64_t resource_revision = 0;
};

}  // namespace ninfer
