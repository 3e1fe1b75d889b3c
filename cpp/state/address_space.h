#pragma once

// The pages of one sequence or one checkpoint, in order, and how many tokens of them count.
//
// Life of an active space: 1. opened empty, or forked or consumed from a frozen one, with its whole growth reserved;
// unsettled while its own copy of an unaligned tail is not there; 2. map gives it pages out of the reservation, units
// write them, commit moves the frontier; 3. freeze splits off frozen spaces at the frontier; 4. finish freezes it in
// place, or release ends it. A frozen space never changes; it is read through forks, and ends by release or by consume.

#include <cstdint>
#include <vector>

#include "cpp/state/page_runs.h"

namespace ninfer {

struct SpaceTag {};
using SpaceId = Handle<SpaceTag>;

struct AddressSpace {
    RunId last;                 // its chain; of an active space always its own leaf run, which nobody else has
    std::int64_t frontier = 0;  // committed tokens: what lies beyond is not there
    bool active = false;
    // The rest belongs to active spaces only.
    std::int64_t reserved = 0;             // Device pages promised and not mapped yet
    PageId tail_source;                    // of an unsettled space: the page its last one is to be copied from
    std::vector<std::int32_t> page_table;  // the device page of each mapped page; has room for the reserved ones

    bool unsettled() const noexcept { return tail_source != PageId{}; }
    std::int64_t pages_mapped() const noexcept { return std::ssize(page_table); }
};

}  // namespace ninfer
