#pragma once

// The Host tier: equal blocks of one arena. A page or a state image is a list of blocks, so free space is a count, nothing
// fragments, and any mix of pages and images fits iff the number of blocks fits.
//
// Invariants (check_invariants): a block is either free or in exactly one list; a list has exactly `count` blocks;
// blocks_used + blocks_free = blocks_total. There are never more than blocks_total blocks, so the byte limit cannot be
// exceeded, not for a moment. No operation allocates heap memory.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/result.h"
#include "cpp/memory/copy_engine.h"
#include "cpp/state/fingerprint.h"
#include "cpp/state/refusal.h"

namespace ninfer {

// Blocks linked through the tier's table. Owned by the page, the image or the open copy whose record it is in; empty: none.
struct BlockList {
    std::int32_t head = -1;
    std::int32_t count = 0;

    bool empty() const noexcept { return count == 0; }
};

class HostTier {
   public:
    static constexpr std::size_t kLargestBlockBytes = std::size_t{64} << 10;

    // The size of a block for pages of this size: the page itself, rounded up to 64 bytes, or 64 KiB if that is less.
    static std::size_t block_bytes_for(std::size_t page_bytes);

    // Uses as many whole blocks of the memory as there are; the memory outlives the tier. block_bytes is a multiple of 64.
    HostTier(std::span<std::byte> memory, std::size_t block_bytes);

    std::int64_t blocks_total() const noexcept { return std::ssize(next_); }
    std::int64_t blocks_used() const noexcept { return blocks_used_; }
    std::int64_t blocks_free() const noexcept { return blocks_total() - blocks_used_; }
    std::size_t block_bytes() const noexcept { return block_bytes_; }
    std::int64_t blocks_for(std::size_t bytes) const noexcept;

    // `count` blocks, at least one. kNoHostBlocks.
    Result<BlockList, Refusal> allocate(std::int64_t count);
    // The list becomes empty; an empty one stays so.
    void release(BlockList& list);

    // Appends what moves `bytes` from memory that is in one piece to the list's blocks, or back.
    void append_to_host(const std::byte* src, const BlockList& dst, std::size_t bytes,
                        std::vector<CopySegment>& segments);
    void append_from_host(const BlockList& src, std::byte* dst, std::size_t bytes, std::vector<CopySegment>& segments);

    // `in_use` holds every list that anybody owns.
    void check_invariants(std::span<const BlockList> in_use) const;
    void add_to(Fingerprint& fingerprint) const;
    std::uint64_t fingerprint() const;
    std::size_t bookkeeping_bytes() const;

   private:
    static constexpr std::int32_t kEnd = -1;

    // Calls visit(block memory, offset in the record, bytes) for the blocks that hold the first `bytes` bytes.
    template <typename Visit>
    void for_each_piece(const BlockList& list, std::size_t bytes, Visit&& visit);

    std::span<std::byte> memory_;
    std::size_t block_bytes_;
    std::vector<std::int32_t> next_;  // [blocks] the following block of the same list, or of the free ones; kEnd: none
    std::int32_t first_free_ = kEnd;
    std::int64_t blocks_used_ = 0;
};

}  // namespace ninfer
