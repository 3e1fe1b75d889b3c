#pragma once

#include "cpp/ops/row_segment.h"
#include "cpp/tensor/paged_kv_view.h"

namespace ninfer {

// Rows of one sequence with the pages of one layer that they read and extend.
struct KvSegment {
    RowSegment rows;
    PagedKvView kv;
};

}  // namespace ninfer
