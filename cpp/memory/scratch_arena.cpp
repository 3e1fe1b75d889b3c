#include "cpp/memory/scratch_arena.h"

namespace ninfer {

void* ScratchArena::take_bytes(std::size_t bytes) {
    constexpr std::size_t kAlignment = 64;
    const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    NINFER_ASSERT_LE(used_ + rounded, buffer_.size());
    std::byte* result = buffer_.data() + used_;
    used_ += rounded;
    if (used_ > peak_) peak_ = used_;
    return result;
}

}  // namespace ninfer
