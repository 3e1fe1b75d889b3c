#pragma once

// The pages of the temporary store of issue 1: one arena, a free list, no sharing. Invariant: every page is either in
// the free list or in exactly one sequence's table.

#include <cstdint>
#include <vector>

#include "cpp/memory/host_buffer.h"
#include "cpp/model/sequence_rows.h"

namespace ninfer {

class PagePool {
   public:
    PagePool(std::int64_t pages, std::size_t page_bytes);

    std::int64_t pages_total() const noexcept { return pages_; }
    std::int64_t pages_free() const noexcept { return static_cast<std::int64_t>(free_.size()); }
    KvPoolView view() noexcept { return {buffer_.data(), page_bytes_}; }

    // Appends `count` free pages to the table; the caller has checked pages_free().
    void take(std::int64_t count, std::vector<std::int32_t>& table);
    // Gives back all pages of the table and empties it.
    void give_back(std::vector<std::int32_t>& table);

   private:
    std::int64_t pages_;
    std::size_t page_bytes_;
    HostBuffer buffer_;
    std::vector<std::int32_t> free_;
};

}  // namespace ninfer
