#include "cpp/memory/scratch_arena.h"

namespace ninfer {

void* ScratchArena::take_bytes(std::size_t bytes) {
    constexpr std::size_t kAlignment = 64;
    NINFER_ASSERT_LE(bytes, buffer_.size() - used_);
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    NINFER_ASSERT_LE(rounded, buffer_.size() - used_);
    std::byte* result = buffer_.data() + used_;
    used_ += rounded;
    if (used_ > peak_) peak_ = used_;
    return result;
}

}  // namespace ninfer
