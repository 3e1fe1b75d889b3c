#pragma once

// The passes of sampling over blocks of logits, and their arithmetic (cpp/ops/sampling.h).

#include <cfloat>
#include <cstdint>

#include "cpp/ops/cpu/sampling_row.h"
#include "cpp/ops/cpu/simd/math.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

inline constexpr float kMinusInfinity = -__builtin_inff();
inline constexpr float kMassUnit = 0x1p42F;

// NaN counts as -inf.
NINFER_INLINE F32x16 known(F32x16 logits) { return max(logits, set1(kMinusInfinity)); }

NINFER_INLINE F32x16 load_logits(const float* logits, std::int64_t n) {
    return n >= kLanes ? known(load(logits)) : select(lane_mask(n), known(load_n(logits, n)), set1(kMinusInfinity));
}

NINFER_INLINE float group_maximum(const float* logits, std::int64_t count) {
    F32x16 largest = set1(kMinusInfinity);
    std::int64_t i = 0;
    // max(v, largest) keeps largest where v is NaN.
    for (; i + kLanes <= count; i += kLanes) largest = max(load(logits + i), largest);
    if (i < count) largest = max(load_logits(logits + i, count - i), largest);
    return reduce_max(largest);
}

// What turns logits into weights.
struct Softmax {
    float best;
    float temperature;
    float min_p;  // smaller weights become 0
};

NINFER_INLINE F32x16 weights_of(F32x16 logits, const Softmax& softmax) {
    const F32x16 best = set1(softmax.best);
    const F32x16 distance = div(sub(logits, best), set1(softmax.temperature));
    // The best logit itself may be +inf, whose distance to itself is no number.
    const F32x16 weight = exp(select(lt(logits, best), distance, zero()));
    return select(lt(weight, set1(softmax.min_p)), zero(), weight);
}

NINFER_INLINE std::uint64_t mass_of(float weight) {
    return static_cast<std::uint64_t>(static_cast<std::int64_t>(weight * kMassUnit));
}

NINFER_INLINE std::uint64_t total_mass(const float* logits, std::int64_t count, const Softmax& softmax) {
    std::uint64_t total = 0;
    for (std::int64_t i = 0; i < count; i += kLanes) {
        float weights[kLanes];
        store(weights, weights_of(load_logits(logits + i, count - i), softmax));
        for (const float weight : weights) total += mass_of(weight);
    }
    return total;
}

// Appends every token of the distribution with logit >= bound. Groups, and vectors within them, that lie below are
// skipped.
NINFER_INLINE void collect_candidates(const Distribution& from, std::int64_t tokens, float bound, CandidateSet& set) {
    set.count = 0;
    for (std::int64_t first = 0; first < tokens; first += kLanes) {
        if (from.group_maxima[first / kGroupTokens] < bound) {
            first += kGroupTokens - kLanes;
            continue;
        }
        const F32x16 logits = load_logits(from.logits + first, tokens - first);
        if (reduce_max(logits) < bound) continue;
        float values[kLanes];
        store(values, logits);
        const std::int64_t n = tokens - first < kLanes ? tokens - first : kLanes;
        for (std::int64_t lane = 0; lane < n; ++lane) {
            set.ids[set.count] = static_cast<std::int32_t>(first + lane);
            set.logits[set.count] = values[lane];
            set.count += values[lane] >= bound ? 1 : 0;
        }
    }
}

// A bound that at least `wanted` tokens reach: the wanted-th largest group maximum. `set` is only room to sort in.
NINFER_INLINE float bound_of_largest(const Distribution& from, std::int64_t tokens, std::int64_t wanted,
                                     CandidateSet& set) {
    if (wanted > group_count(tokens)) return kMinusInfinity;
    set.count = group_count(tokens);
    for (std::int64_t group = 0; group < set.count; ++group) set.logits[group] = from.group_maxima[group];
    sort_candidates(set);
    return set.logits[set.order[wanted - 1]];
}

NINFER_INLINE void weigh_candidates(CandidateSet& set, const Softmax& softmax) {
    for (std::int64_t i = 0; i < set.count; i += kLanes) {
        const std::int64_t n = set.count - i < kLanes ? set.count - i : kLanes;
        store_n(set.weights + i, weights_of(load_logits(set.logits + i, n), softmax), n);
    }
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
