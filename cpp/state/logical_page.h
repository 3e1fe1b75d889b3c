#pragma once

// One page of keys and values as address spaces see it, wherever its bytes lie.
//
// Life of a page: 1. born on Device, out of an active space's reservation, in the leaf run of that space, its writer;
// 2. units write it, commits raise its coverage and change its epoch; 3. it becomes immutable when it is full or when its
// space is frozen; 4. shared: every space whose chain goes through its run refers to it; 5. placed: a copy to the other
// tier adds a replica, a drop takes one, never the last one; 6. a partial page whose only space is consumed gets a writer
// again and loses its Host replica; 7. gone with the last space that refers to it.
//
// Invariants: at least one replica; a Host replica is complete and has the page's epoch; pinned pages lose no replica,
// get no writer, and do not go; a page with a writer has no Host replica.

#include <cstdint>

#include "cpp/state/handle.h"
#include "cpp/state/host_tier.h"
#include "cpp/state/shared_runs.h"

namespace ninfer {

struct PageTag {};
using PageId = Handle<PageTag>;

struct LogicalPage {
    static constexpr std::int32_t kNotOnDevice = -1;

    std::uint64_t epoch = 0;       // names the content: no two contents of a store's pages ever had the same one
    RunId run;                     // that lists it; its holders are the page's references
    BlockList host;                // its Host replica, or empty
    std::uint64_t host_epoch = 0;  // of the content that was copied to Host
    std::int32_t device_page = kNotOnDevice;
    std::int32_t coverage = 0;  // committed tokens, 0..64
    std::int32_t pins = 0;      // open copies that read or write it, and unsettled spaces whose tail is copied from it
    bool copying = false;       // a copy that will change its replicas or its content is open

    bool on_device() const noexcept { return device_page != kNotOnDevice; }
    bool on_host() const noexcept { return !host.empty(); }
    // Whether a replica has the content that the epoch names. The Device one always does: it is what units write.
    bool has_content() const noexcept { return on_device() || (on_host() && host_epoch == epoch); }
};

}  // namespace ninfer
