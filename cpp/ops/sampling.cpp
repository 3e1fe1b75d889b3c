#include "cpp/ops/sampling.h"

#include "cpp/ops/cpu/sampling_row.h"

namespace ninfer {

std::size_t sampling_scratch_bytes(std::int64_t rows, std::int64_t vocab_size) {
    // Upper bound of what take_sampling_row carves, each of its arrays rounded up to 64 bytes. Little of it is touched:
    // candidates are few unless a row asks for nearly all tokens.
    constexpr std::size_t kArrays = 13;
    constexpr std::size_t kBytesPerToken = sizeof(float) + 7 * sizeof(std::uint32_t);
    const std::size_t per_row = static_cast<std::size_t>(vocab_size) * kBytesPerToken +
                                static_cast<std::size_t>(group_count(vocab_size)) * 2 * sizeof(float) +
                                static_cast<std::size_t>(block_count(vocab_size)) * 2 * sizeof(std::uint64_t) +
                                sizeof(SamplingRow) + kArrays * 64;
    return static_cast<std::size_t>(rows) * per_row;
}

}  // namespace ninfer
