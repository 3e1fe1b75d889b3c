#pragma once

// What sampling holds per row, and where it lies in scratch.

#include <cstdint>

#include "cpp/base/inline.h"
#include "cpp/ops/cpu/candidate_set.h"
#include "cpp/ops/sampling.h"

namespace ninfer {

// A vocabulary is scanned in blocks, the unit of parallel work, of groups, whose maxima steer the search for
// candidates.
inline constexpr std::int64_t kBlockTokens = 4096;
inline constexpr std::int64_t kGroupTokens = 256;
inline constexpr std::int64_t kBlockGroups = kBlockTokens / kGroupTokens;

NINFER_INLINE std::int64_t block_count(std::int64_t tokens) { return (tokens + kBlockTokens - 1) / kBlockTokens; }
NINFER_INLINE std::int64_t group_count(std::int64_t tokens) { return (tokens + kGroupTokens - 1) / kGroupTokens; }

// One distribution over the valid tokens: the model's own or the adjusted one.
struct Distribution {
    const float* logits = nullptr;
    float* group_maxima = nullptr;          // NaN counts as -inf
    std::uint64_t* block_masses = nullptr;  // of the kept tokens, where a phase needs them
    float best = 0.0F;
};

// Adjusted equals model (and shares its maxima) where neither mask, bias nor penalties apply.
struct SamplingRow {
    const SamplerInput* input = nullptr;
    std::int64_t tokens = 0;
    float* adjusted_logits = nullptr;  // room for them
    Distribution model;
    Distribution adjusted;
    CandidateSet candidates;
};

SamplingRow take_sampling_row(ScratchArena& scratch, const SamplingArgs& args, std::int64_t row);

// Which work a row asks for.
bool is_greedy(const SamplerInput& input);
bool is_adjusted(const SamplerInput& input);
bool has_top_k(const SamplerInput& input, std::int64_t tokens);
bool has_top_p(const SamplerInput& input);

// Asserts what the contract requires of a row's inputs.
void check_sampler_input(const SamplerInput& input, std::int64_t tokens);

}  // namespace ninfer
