#pragma once

// The two inner products of attention over one page of 64 keys, for a block of queries at once. Lanes are independent
// sums, so how many queries and vectors a block has does not change a bit (N-2, N-6 of docs/design/numerics.md).

#include <cstdint>

#include "cpp/ops/cpu/simd/vec.h"
#include "cpp/tensor/paged_kv_view.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

// Blocks fill the registers: 6 queries x 4 vectors of the 32 of AVX-512; 6 x 1 (two registers) of the 16 of AVX2.
inline constexpr std::int64_t kBlockQueries = 6;
#if defined(NINFER_ISA_AVX512)
inline constexpr int kBlockVectors = 4;
#else
inline constexpr int kBlockVectors = 1;
#endif

NINFER_INLINE F32x16 load_widened(const float* p) { return load(p); }
NINFER_INLINE F32x16 load_widened(const std::uint16_t* p) { return load_bf16(p); }
NINFER_INLINE F32x16 load_widened(const std::int8_t* p) { return load_i8(p); }

// Asks for what lies behind the `count` elements at p to come into the second-level cache. Decode reads every page
// once: without this, each plane's first lines wait for memory.
template <typename T>
NINFER_INLINE void prefetch(const T* p, std::int64_t count) {
    constexpr std::int64_t kLine = 64 / static_cast<std::int64_t>(sizeof(T));
    for (std::int64_t i = 0; i < count; i += kLine) __builtin_prefetch(p + i, 0, 2);
}

template <typename T>
struct ScoreBlock {
    const float* queries;  // pre-multiplied by the softmax scale
    std::int64_t query_stride;
    const T* keys;        // [features][64]
    const T* keys_ahead;  // of the next page, to be prefetched, or nullptr
    std::int64_t features;
    const float* scales;  // [64], or nullptr: none
    bool continued;       // add to the scores of the features before (int8 only)
    float* scores;        // [queries][64]
};

template <int kQueries, typename T>
NINFER_INLINE void score_vectors(const ScoreBlock<T>& block, std::int64_t key) {
    F32x16 sums[static_cast<std::size_t>(kQueries)][static_cast<std::size_t>(kBlockVectors)];
    for (int q = 0; q < kQueries; ++q)
        for (int v = 0; v < kBlockVectors; ++v) sums[q][v] = zero();
    for (std::int64_t d = 0; d < block.features; ++d) {
        if (block.keys_ahead != nullptr) prefetch(block.keys_ahead + d * kPageTokens + key, kBlockVectors * kLanes);
        F32x16 keys[kBlockVectors];
        for (int v = 0; v < kBlockVectors; ++v) keys[v] = load_widened(block.keys + d * kPageTokens + key + v * kLanes);
        for (int q = 0; q < kQueries; ++q) {
            const F32x16 x = set1(block.queries[q * block.query_stride + d]);
            for (int v = 0; v < kBlockVectors; ++v) sums[q][v] = fma(x, keys[v], sums[q][v]);
        }
    }
    for (int q = 0; q < kQueries; ++q)
        for (int v = 0; v < kBlockVectors; ++v) {
            float* score = block.scores + q * kPageTokens + key + v * kLanes;
            if (block.scales == nullptr)
                store(score, sums[q][v]);
            else
                store(score,
                      fma(sums[q][v], load(block.scales + key + v * kLanes), block.continued ? load(score) : zero()));
        }
}

template <int kQueries, typename T>
void score_page(const ScoreBlock<T>& block) {
    for (std::int64_t key = 0; key < kPageTokens; key += kBlockVectors * kLanes) score_vectors<kQueries>(block, key);
}

template <typename T>
struct ValueBlock {
    const float* weights;   // [queries][64]
    const float* rescale;   // [queries]
    const T* values;        // [64][value_stride]
    const T* values_ahead;  // of the next page, to be prefetched, or nullptr
    std::int64_t value_stride;
    std::int64_t key_begin;
    std::int64_t key_end;
    std::int64_t feature_begin;  // [feature_begin, feature_end): a multiple of 16 features
    std::int64_t feature_end;
    float* accumulators;
    std::int64_t accumulator_stride;
};

template <int kQueries, int kVectors, typename T>
NINFER_INLINE void accumulate_vectors(const ValueBlock<T>& block, std::int64_t feature) {
    F32x16 sums[static_cast<std::size_t>(kQueries)][static_cast<std::size_t>(kVectors)];
    for (int q = 0; q < kQueries; ++q)
        for (int v = 0; v < kVectors; ++v)
            sums[q][v] = mul(load(block.accumulators + q * block.accumulator_stride + feature + v * kLanes),
                             set1(block.rescale[q]));
    for (std::int64_t key = block.key_begin; key < block.key_end; ++key) {
        if (block.values_ahead != nullptr)
            prefetch(block.values_ahead + key * block.value_stride + feature, kVectors * kLanes);
        F32x16 values[static_cast<std::size_t>(kVectors)];
        for (int v = 0; v < kVectors; ++v)
            values[v] = load_widened(block.values + key * block.value_stride + feature + v * kLanes);
        for (int q = 0; q < kQueries; ++q) {
            const F32x16 x = set1(block.weights[q * kPageTokens + key]);
            for (int v = 0; v < kVectors; ++v) sums[q][v] = fma(x, values[v], sums[q][v]);
        }
    }
    for (int q = 0; q < kQueries; ++q)
        for (int v = 0; v < kVectors; ++v)
            store(block.accumulators + q * block.accumulator_stride + feature + v * kLanes, sums[q][v]);
}

template <int kQueries, typename T>
void accumulate_features(const ValueBlock<T>& block) {
    std::int64_t feature = block.feature_begin;
    for (; feature + kBlockVectors * kLanes <= block.feature_end; feature += kBlockVectors * kLanes)
        accumulate_vectors<kQueries, kBlockVectors>(block, feature);
    for (; feature < block.feature_end; feature += kLanes) accumulate_vectors<kQueries, 1>(block, feature);
}

template <typename T>
NINFER_INLINE void score_block(std::int64_t queries, const ScoreBlock<T>& block) {
    switch (queries) {
        case 1:
            return score_page<1>(block);
        case 2:
            return score_page<2>(block);
        case 3:
            return score_page<3>(block);
        case 4:
            return score_page<4>(block);
        case 5:
            return score_page<5>(block);
        default:
            return score_page<6>(block);
    }
}

template <typename T>
NINFER_INLINE void accumulate_block(std::int64_t queries, const ValueBlock<T>& block) {
    switch (queries) {
        case 1:
            return accumulate_features<1>(block);
        case 2:
            return accumulate_features<2>(block);
        case 3:
            return accumulate_features<3>(block);
        case 4:
            return accumulate_features<4>(block);
        case 5:
            return accumulate_features<5>(block);
        default:
            return accumulate_features<6>(block);
    }
}

// A page's plane in f32, so that the many queries of a prefill tile convert it once. Exact for every storage.
template <typename T>
NINFER_INLINE void widen_rows(const T* source, std::int64_t rows, std::int64_t columns, float* target,
                              std::int64_t target_stride) {
    for (std::int64_t r = 0; r < rows; ++r) {
        const T* from = source + r * columns;
        float* to = target + r * target_stride;
        std::int64_t c = 0;
        for (; c + kLanes <= columns; c += kLanes) store(to + c, load_widened(from + c));
        if (c == columns) continue;
        T padded[kLanes] = {};
        for (std::int64_t i = 0; c + i < columns; ++i) padded[i] = from[c + i];
        store(to + c, load_widened(padded));
    }
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
