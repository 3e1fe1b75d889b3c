#pragma once

// The pages of all address spaces, as chains of shared runs, and what each run knows about its pages, so that facts about
// a space cost its runs and never its pages.

#include <cstdint>

#include "cpp/state/logical_page.h"
#include "cpp/state/shared_runs.h"

namespace ninfer {

// Counts over the run's pages, or over the spaces through it (Run::holders counts all of those).
struct PageRunData {
    std::int32_t readers = 0;    // active spaces through it: while there are any, none of its pages leaves the device
    std::int32_t on_device = 0;  // pages
    std::int32_t on_host = 0;    // pages
    std::int32_t pins = 0;       // the sum of the pages' pins
};

using PageRuns = SharedRuns<PageId, PageRunData>;

}  // namespace ninfer
