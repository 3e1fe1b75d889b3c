#pragma once

// A ragged batch: the rows of one model unit, cut into one segment per sequence. Row r of a segment is the token at
// absolute position first_position + r of its sequence.

#include <cstdint>

namespace ninfer {

struct RowSegment {
    std::int64_t row_begin = 0;
    std::int64_t row_count = 0;
    std::int64_t first_position = 0;
};

}  // namespace ninfer
