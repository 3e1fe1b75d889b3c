#pragma once

// Online softmax of one tile of queries over the pages of one kv head (N-6 of docs/design/numerics.md).

#include <cstdint>

#include "cpp/ops/cpu/attention_kernels.h"
#include "cpp/ops/cpu/attention_scratch.h"
#include "cpp/ops/cpu/simd/math.h"
#include "cpp/ops/paged_attention.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

struct AttentionTile {
    const KvSegment* segment;
    std::int64_t row;  // of the batch
    std::int64_t rows;
    std::int64_t position;  // of the first row
    std::int64_t kv_head;
    std::int64_t head;  // first query head
    std::int64_t heads;

    NINFER_INLINE std::int64_t queries() const { return rows * heads; }
    NINFER_INLINE std::int64_t last_position() const { return position + rows - 1; }
    NINFER_INLINE std::int64_t restarts() const { return last_position() / kRestartKeys + 1; }
    // First query that sees the key at `key`.
    NINFER_INLINE std::int64_t first_query(std::int64_t key) const {
        return key <= position ? 0 : (key - position) * heads;
    }
};

// Running maximum, sum of weights and weighted values of every query.
struct SoftmaxState {
    float* maximum;
    float* sum;
    float* accumulators;  // [queries][padded_dim]

    NINFER_INLINE static SoftmaxState carve(float* memory) {
        return {memory, memory + kTileQueries, memory + 2 * kTileQueries};
    }
};

struct TileScratch {
    AttentionScratchLayout layout;
    float* queries;         // [queries][padded_dim]
    float* scores;          // [queries][64], then the weights
    float* scaled_weights;  // [queries][64]
    float* keys;            // [head_dim][64]
    float* values;          // [64][padded_dim]
    float* value_scales;    // [blocks][64]
    float* rescale;
    float* page_sums;
    SoftmaxState restart;
    SoftmaxState total;

    NINFER_INLINE static TileScratch carve(const AttentionScratchLayout& layout, float* memory) {
        TileScratch scratch;
        scratch.layout = layout;
        scratch.queries = memory;
        scratch.scores = scratch.queries + layout.query_floats();
        scratch.scaled_weights = scratch.scores + layout.score_floats();
        scratch.keys = scratch.scaled_weights + layout.score_floats();
        scratch.values = scratch.keys + layout.plane_floats();
        scratch.value_scales = scratch.values + layout.plane_floats();
        scratch.rescale = scratch.value_scales + layout.scale_floats();
        scratch.page_sums = scratch.rescale + kTileQueries;
        scratch.restart = SoftmaxState::carve(scratch.page_sums + kTileQueries);
        scratch.total = SoftmaxState::carve(scratch.page_sums + kTileQueries + layout.state_floats());
        return scratch;
    }
};

// One page of one kv head as the kernels read it. Scales are nullptr unless the storage is int8.
template <typename T>
struct PagePlanes {
    const T* keys;
    const float* key_scales;  // [blocks][64]
    const T* values;
    std::int64_t value_stride;
    const float* value_scales;  // [blocks][64], transposed from the page
    std::int64_t first_key;
    const T* keys_ahead = nullptr;  // of the page after, if it is to be prefetched
    const T* values_ahead = nullptr;
};

// Turns one query's scores into weights; keys from `count` on weigh 0. Leaves m_old - m_new in *rescale.
NINFER_INLINE void weigh(float* scores, std::int64_t count, float* maximum, float* rescale, float* page_sum) {
    F32x16 s[4];
    for (int v = 0; v < 4; ++v) {
        const std::int64_t left = count - v * kLanes;
        const Mask16 seen = lane_mask(left <= 0 ? 0 : left < kLanes ? left : kLanes);
        s[v] = select(seen, load(scores + v * kLanes), set1(-__builtin_inff()));
    }
    const float page_maximum = reduce_max(max(max(s[0], s[1]), max(s[2], s[3])));
    const float new_maximum = *maximum > page_maximum ? *maximum : page_maximum;
    *rescale = *maximum - new_maximum;
    *maximum = new_maximum;
    for (int v = 0; v < 4; ++v) {
        s[v] = exp(sub(s[v], set1(new_maximum)));
        store(scores + v * kLanes, s[v]);
    }
    *page_sum = reduce_add_64(s[0], s[1], s[2], s[3]);
}

// Size of the next block of queries: as few blocks as fit, of nearly the same size (7 queries are 4 and 3, not 6 and
// 1).
NINFER_INLINE std::int64_t block_size(std::int64_t queries_left) {
    const std::int64_t blocks = (queries_left + kBlockQueries - 1) / kBlockQueries;
    return (queries_left + blocks - 1) / blocks;
}

template <typename T>
void score_queries(const TileScratch& scratch, const PagePlanes<T>& page, std::int64_t first, std::int64_t queries) {
    const std::int64_t head_dim = scratch.layout.head_dim;
    const std::int64_t stride = scratch.layout.padded_dim();
    const std::int64_t step = page.key_scales == nullptr ? head_dim : kKvScaleFeatures;
    for (std::int64_t q = first, count = 0; q < queries; q += count) {
        count = block_size(queries - q);
        for (std::int64_t d = 0; d < head_dim; d += step) {
            ScoreBlock<T> block{};
            block.queries = scratch.queries + q * stride + d;
            block.query_stride = stride;
            block.keys = page.keys + d * kPageTokens;
            if (q == first && page.keys_ahead != nullptr) block.keys_ahead = page.keys_ahead + d * kPageTokens;
            block.features = head_dim - d < step ? head_dim - d : step;
            if (page.key_scales != nullptr) block.scales = page.key_scales + d / step * kPageTokens;
            block.continued = d > 0;
            block.scores = scratch.scores + q * kPageTokens;
            score_block(count, block);
        }
    }
}

// Weights of one block of queries times the value scales of one block of features.
NINFER_INLINE void scale_weights(const float* weights, const float* scales, std::int64_t queries, float* scaled) {
    for (std::int64_t q = 0; q < queries; ++q)
        for (std::int64_t k = 0; k < kPageTokens; k += kLanes)
            store(scaled + q * kPageTokens + k, mul(load(weights + q * kPageTokens + k), load(scales + k)));
}

// Queries [q, q + count) of the tile: first the keys that all of them see, then each one's rest.
template <typename T>
void accumulate_queries(const AttentionTile& tile, const TileScratch& scratch, ValueBlock<T> block,
                        std::int64_t first_key, std::int64_t q, std::int64_t count) {
    const auto seen = [&](std::int64_t query) {
        const std::int64_t keys = tile.position + query / tile.heads - first_key + 1;
        return keys < kPageTokens ? keys : kPageTokens;
    };
    block.key_begin = 0;
    block.key_end = seen(q);
    block.rescale = scratch.rescale + q;
    accumulate_block(count, block);
    const float one = 1.0F;
    for (std::int64_t i = 1; i < count; ++i) {
        if (seen(q + i) == block.key_end) continue;
        ValueBlock<T> rest = block;
        rest.key_begin = block.key_end;
        rest.key_end = seen(q + i);
        rest.weights = block.weights + i * kPageTokens;
        rest.accumulators = block.accumulators + i * block.accumulator_stride;
        rest.rescale = &one;
        accumulate_features<1>(rest);
    }
}

template <typename T>
void accumulate_page(const AttentionTile& tile, const TileScratch& scratch, const PagePlanes<T>& page,
                     std::int64_t first, const SoftmaxState& state) {
    const std::int64_t stride = scratch.layout.padded_dim();
    const std::int64_t step = page.value_scales == nullptr ? stride : kKvScaleFeatures;
    for (std::int64_t q = first, count = 0; q < tile.queries(); q += count) {
        count = block_size(tile.queries() - q);
        ValueBlock<T> block{};
        block.weights = scratch.scores + q * kPageTokens;
        block.values = page.values;
        block.values_ahead = q == first ? page.values_ahead : nullptr;
        block.value_stride = page.value_stride;
        block.accumulators = state.accumulators + q * stride;
        block.accumulator_stride = stride;
        for (std::int64_t d = 0; d < stride; d += step) {
            if (page.value_scales != nullptr) {
                scale_weights(scratch.scores + q * kPageTokens, page.value_scales + d / step * kPageTokens, count,
                              scratch.scaled_weights);
                block.weights = scratch.scaled_weights;
            }
            block.feature_begin = d;
            block.feature_end = d + step < stride ? d + step : stride;
            accumulate_queries(tile, scratch, block, page.first_key, q, count);
        }
    }
}

template <typename T>
void visit_page(const AttentionTile& tile, const TileScratch& scratch, const PagePlanes<T>& page,
                const SoftmaxState& state) {
    const std::int64_t queries = tile.queries();
    const std::int64_t first = tile.first_query(page.first_key);
    score_queries(scratch, page, first, queries);
    for (std::int64_t q = first; q < queries; ++q)
        weigh(scratch.scores + q * kPageTokens, tile.position + q / tile.heads - page.first_key + 1, state.maximum + q,
              scratch.rescale + q, scratch.page_sums + q);
    for (std::int64_t q = first; q < queries; q += kLanes) {
        const std::int64_t n = queries - q < kLanes ? queries - q : kLanes;
        const F32x16 factor = exp(load_n(scratch.rescale + q, n));
        store_n(scratch.rescale + q, factor, n);
        store_n(state.sum + q, fma(load_n(state.sum + q, n), factor, load_n(scratch.page_sums + q, n)), n);
    }
    accumulate_page(tile, scratch, page, first, state);
}

// Adds the later keys' state to the earlier keys' one, for queries from `first` on.
NINFER_INLINE void merge_states(const SoftmaxState& earlier, const SoftmaxState& later, std::int64_t first,
                                std::int64_t queries, std::int64_t stride) {
    for (std::int64_t q = first; q < queries; ++q) {
        const float m1 = earlier.maximum[q];
        const float m2 = later.maximum[q];
        const float m = m1 > m2 ? m1 : m2;
        const F32x16 factor1 = exp(set1(m1 - m));
        const F32x16 factor2 = exp(set1(m2 - m));
        earlier.maximum[q] = m;
        store_n(earlier.sum + q, fma(set1(later.sum[q]), factor2, mul(set1(earlier.sum[q]), factor1)), 1);
        float* to = earlier.accumulators + q * stride;
        const float* from = later.accumulators + q * stride;
        for (std::int64_t d = 0; d < stride; d += kLanes)
            store(to + d, fma(load(from + d), factor2, mul(load(to + d), factor1)));
    }
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
