#pragma once

// What a model unit is given: for each sequence the rows to compute and views of its state. A model knows no stores: it
// reads KV through a page table and recurrent state through two image pointers, and never changes either mapping.

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/tensor/paged_kv_view.h"

namespace ninfer {

// Which rows of a sequence need logits.
enum class LogitRows : std::uint8_t { kNone, kLast, kAll };

struct SequenceRows {
    std::span<const std::int32_t> tokens;      // the rows, at least one
    std::int64_t first_position = 0;           // absolute position of tokens[0]
    std::span<const std::int32_t> page_table;  // covers first_position + tokens.size()
    const std::byte* state_read = nullptr;     // state image, nullptr for models without recurrent layers
    std::byte* state_write = nullptr;          // may be state_read (InPlace)
    LogitRows logit_rows = LogitRows::kLast;
};

}  // namespace ninfer
