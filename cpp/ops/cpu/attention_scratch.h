#pragma once

// How much scratch attention needs, in floats. Shared by the op and by paged_attention_scratch_bytes, so all of it is
// NINFER_INLINE and independent of the instruction set.
//
// A tile is the queries that share a walk over the pages of one kv head: rows of one sequence times heads of the group,
// at most kTileQueries of them, ordered by row, then head.

#include <cstdint>

#include "cpp/base/inline.h"
#include "cpp/ops/paged_attention.h"

namespace ninfer {

inline constexpr std::int64_t kTileQueries = 48;
inline constexpr std::int64_t kRestartKeys = 1024;
// With fewer tiles than this per thread, tiles are split into their restarts of 1,024 keys.
inline constexpr std::int64_t kSplitTilesPerThread = 4;
// Restarts per thread that are computed before they are merged.
inline constexpr std::int64_t kPartialsPerThread = 8;

struct AttentionScratchLayout {
    std::int64_t head_dim = 0;

    NINFER_INLINE std::int64_t padded_dim() const noexcept { return (head_dim + 15) / 16 * 16; }
    NINFER_INLINE std::int64_t scale_blocks() const noexcept {
        return (head_dim + kKvScaleFeatures - 1) / kKvScaleFeatures;
    }
    // Maximum, sum and accumulator of every query of a tile.
    NINFER_INLINE std::int64_t state_floats() const noexcept { return kTileQueries * (padded_dim() + 2); }
    NINFER_INLINE std::int64_t query_floats() const noexcept { return kTileQueries * padded_dim(); }
    NINFER_INLINE std::int64_t score_floats() const noexcept { return kTileQueries * kPageTokens; }
    NINFER_INLINE std::int64_t plane_floats() const noexcept { return kPageTokens * padded_dim(); }
    NINFER_INLINE std::int64_t scale_floats() const noexcept { return kPageTokens * scale_blocks(); }
    // Queries, scores twice (as they are and times the value scales), one page's keys, values and value scales, rescale
    // factors and page sums, and two states.
    NINFER_INLINE std::int64_t thread_floats() const noexcept {
        return query_floats() + 2 * score_floats() + 2 * plane_floats() + scale_floats() + 2 * kTileQueries +
               2 * state_floats();
    }
};

}  // namespace ninfer
