#include "cpp/state/host_tier.h"

#include <algorithm>

#include "cpp/base/assert.h"

namespace ninfer {

namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

std::size_t HostTier::block_bytes_for(std::size_t page_bytes) {
    return std::min(kLargestBlockBytes, (page_bytes + kAlignment - 1) / kAlignment * kAlignment);
}

HostTier::HostTier(std::span<std::byte> memory, std::size_t block_bytes) : memory_(memory), block_bytes_(block_bytes) {
    NINFER_ASSERT_LT(std::size_t{0}, block_bytes);
    NINFER_ASSERT_EQ(block_bytes % kAlignment, 0);
    const std::size_t blocks = memory.size() / block_bytes;
    NINFER_ASSERT_LE(blocks, std::int64_t{INT32_MAX});
    next_.resize(blocks);
    for (std::size_t i = 0; i < blocks; ++i) next_[i] = i + 1 < blocks ? static_cast<std::int32_t>(i + 1) : kEnd;
    first_free_ = blocks > 0 ? 0 : kEnd;
}

std::int64_t HostTier::blocks_for(std::size_t bytes) const noexcept {
    return static_cast<std::int64_t>((bytes + block_bytes_ - 1) / block_bytes_);
}

Result<BlockList, Refusal> HostTier::allocate(std::int64_t count) {
    NINFER_ASSERT_LE(1, count);
    if (count > blocks_free()) return Refusal{RefusalKind::kNoHostBlocks, count, blocks_free()};
    // The first `count` free blocks become the list; cut it from the rest.
    const std::int32_t head = first_free_;
    std::int32_t last = head;
    for (std::int64_t i = 1; i < count; ++i) last = next_[static_cast<std::size_t>(last)];
    first_free_ = next_[static_cast<std::size_t>(last)];
    next_[static_cast<std::size_t>(last)] = kEnd;
    blocks_used_ += count;
    return BlockList{head, static_cast<std::int32_t>(count)};
}

void HostTier::release(BlockList& list) {
    if (list.empty()) return;
    NINFER_ASSERT_LE(list.count, blocks_used_);
    std::int32_t last = list.head;
    for (std::int32_t i = 1; i < list.count; ++i) last = next_[static_cast<std::size_t>(last)];
    NINFER_ASSERT_EQ(next_[static_cast<std::size_t>(last)], kEnd);
    next_[static_cast<std::size_t>(last)] = first_free_;
    first_free_ = list.head;
    blocks_used_ -= list.count;
    list = BlockList{};
}

template <typename Visit>
void HostTier::for_each_piece(const BlockList& list, std::size_t bytes, Visit&& visit) {
    NINFER_ASSERT_LE(bytes, static_cast<std::size_t>(list.count) * block_bytes_);
    std::int32_t block = list.head;
    for (std::size_t offset = 0; offset < bytes; offset += block_bytes_) {
        std::byte* const memory = memory_.data() + static_cast<std::size_t>(block) * block_bytes_;
        visit(memory, offset, std::min(block_bytes_, bytes - offset));
        block = next_[static_cast<std::size_t>(block)];
    }
}

void HostTier::append_to_host(const std::byte* src, const BlockList& dst, std::size_t bytes,
                              std::vector<CopySegment>& segments) {
    for_each_piece(dst, bytes, [&](std::byte* memory, std::size_t offset, std::size_t count) {
        segments.push_back({memory, src + offset, count});
    });
}

void HostTier::append_from_host(const BlockList& src, std::byte* dst, std::size_t bytes,
                                std::vector<CopySegment>& segments) {
    for_each_piece(src, bytes, [&](const std::byte* memory, std::size_t offset, std::size_t count) {
        segments.push_back({dst + offset, memory, count});
    });
}

void HostTier::check_invariants(std::span<const BlockList> in_use) const {
    std::vector<bool> seen(next_.size(), false);
    const auto walk = [&](std::int32_t head) {
        std::int64_t count = 0;
        for (std::int32_t block = head; block != kEnd; block = next_[static_cast<std::size_t>(block)]) {
            NINFER_ASSERT_LE(0, block);
            NINFER_ASSERT_LT(block, blocks_total());
            NINFER_ASSERT(!seen[static_cast<std::size_t>(block)], "a Host block is in two lists");
            seen[static_cast<std::size_t>(block)] = true;
            ++count;
        }
        return count;
    };
    std::int64_t used = 0;
    for (const BlockList& list : in_use) {
        NINFER_ASSERT_EQ(walk(list.head), list.count);
        used += list.count;
    }
    NINFER_ASSERT_EQ(used, blocks_used_);
    NINFER_ASSERT_EQ(walk(first_free_), blocks_free());
}

void HostTier::add_to(Fingerprint& fingerprint) const {
    for (const std::int32_t next : next_) fingerprint.add(next);
    fingerprint.add(first_free_);
    fingerprint.add(blocks_used_);
}

std::uint64_t HostTier::fingerprint() const {
    Fingerprint fingerprint;
    add_to(fingerprint);
    return fingerprint.value();
}

std::size_t HostTier::bookkeeping_bytes() const { return next_.capacity() * sizeof(std::int32_t); }

}  // namespace ninfer
