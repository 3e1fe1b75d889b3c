#include "cpp/ops/paged_attention.h"

#include "cpp/ops/cpu/attention_scratch.h"

namespace ninfer {

std::size_t paged_attention_scratch_bytes(int threads, const AttentionShape& shape) {
    const AttentionScratchLayout layout{shape.head_dim};
    const std::int64_t states = kSplitTilesPerThread + kPartialsPerThread;
    // Two words of bookkeeping per state, and the alignment of each piece.
    const std::int64_t floats = layout.thread_floats() + states * (layout.state_floats() + 64);
    return static_cast<std::size_t>(threads * floats) * sizeof(float) + 4096;
}

}  // namespace ninfer
