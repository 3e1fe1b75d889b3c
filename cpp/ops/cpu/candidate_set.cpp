#include "cpp/ops/cpu/candidate_set.h"

#include <bit>

#include "cpp/base/assert.h"

namespace ninfer {

namespace {

constexpr int kDigitBits = 11;
constexpr int kPasses = 3;
constexpr std::uint32_t kDigits = 1U << kDigitBits;

// Ascending keys are descending logits.
std::uint32_t descending_key(float logit) {
    // Adding zero makes -0 and, where denormals are flushed, denormals the same zero.
    const auto bits = std::bit_cast<std::uint32_t>(logit + 0.0F);
    return (bits & 0x80000000U) != 0 ? bits : ~(bits | 0x80000000U);
}

void sort_by_digit(CandidateSet& set, int shift) {
    std::uint32_t starts[kDigits] = {};
    for (std::int64_t i = 0; i < set.count; ++i) ++starts[(set.keys[i] >> shift) % kDigits];
    std::uint32_t sum = 0;
    for (std::uint32_t& start : starts) {
        const std::uint32_t digit_count = start;
        start = sum;
        sum += digit_count;
    }
    for (std::int64_t i = 0; i < set.count; ++i) {
        const std::uint32_t to = starts[(set.keys[i] >> shift) % kDigits]++;
        set.spare_keys[to] = set.keys[i];
        set.spare_order[to] = set.order[i];
    }
    std::swap(set.keys, set.spare_keys);
    std::swap(set.order, set.spare_order);
}

}  // namespace

CandidateSet take_candidate_set(ScratchArena& scratch, std::int64_t capacity) {
    CandidateSet set;
    set.ids = scratch.take<std::int32_t>(capacity);
    set.logits = scratch.take<float>(capacity);
    set.weights = scratch.take<float>(capacity);
    set.order = scratch.take<std::uint32_t>(capacity);
    set.keys = scratch.take<std::uint32_t>(capacity);
    set.spare_order = scratch.take<std::uint32_t>(capacity);
    set.spare_keys = scratch.take<std::uint32_t>(capacity);
    return set;
}

void sort_candidates(CandidateSet& set) {
    NINFER_ASSERT_LE(0, set.count);
    for (std::int64_t i = 0; i < set.count; ++i) {
        set.keys[i] = descending_key(set.logits[i]);
        set.order[i] = static_cast<std::uint32_t>(i);
    }
    for (int pass = 0; pass < kPasses; ++pass) sort_by_digit(set, pass * kDigitBits);
}

}  // namespace ninfer
