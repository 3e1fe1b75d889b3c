#include "cpp/ops/cpu/sampling_row.h"

#include <cmath>
#include <limits>

#include "cpp/base/assert.h"

namespace ninfer {

SamplingRow take_sampling_row(ScratchArena& scratch, const SamplingArgs& args, std::int64_t row) {
    SamplingRow result;
    result.input = &args.inputs[row];
    result.tokens = args.valid_tokens;
    result.adjusted_logits = scratch.take<float>(args.valid_tokens);
    result.model.logits = args.logits.row(row);
    result.model.group_maxima = scratch.take<float>(group_count(args.valid_tokens));
    result.model.block_masses = scratch.take<std::uint64_t>(block_count(args.valid_tokens));
    result.adjusted = result.model;
    result.adjusted.block_masses = scratch.take<std::uint64_t>(block_count(args.valid_tokens));
    float* adjusted_maxima = scratch.take<float>(group_count(args.valid_tokens));
    if (is_adjusted(*result.input)) {
        result.adjusted.logits = result.adjusted_logits;
        result.adjusted.group_maxima = adjusted_maxima;
    }
    result.candidates = take_candidate_set(scratch, args.valid_tokens);
    return result;
}

bool is_greedy(const SamplerInput& input) {
    return input.temperature < std::numeric_limits<float>::min() || input.top_p <= 0.0F;
}

bool is_adjusted(const SamplerInput& input) {
    return input.token_mask != nullptr || input.bias_count > 0 || input.presence_penalty != 0.0F ||
           input.frequency_penalty != 0.0F || input.repetition_penalty != 1.0F;
}

bool has_top_k(const SamplerInput& input, std::int64_t tokens) { return input.top_k > 0 && input.top_k < tokens; }

bool has_top_p(const SamplerInput& input) { return input.top_p < 1.0F; }

void check_sampler_input(const SamplerInput& input, std::int64_t tokens) {
    NINFER_ASSERT(std::isfinite(input.temperature) && input.temperature >= 0.0F, "temperature must be finite and >= 0");
    NINFER_ASSERT(!std::isnan(input.top_p) && !std::isnan(input.min_p), "top_p and min_p must be numbers");
    NINFER_ASSERT(input.min_p <= 1.0F, "min_p above 1 keeps no token");
    NINFER_ASSERT(input.repetition_penalty > 0.0F, "repetition penalty must be > 0");
    NINFER_ASSERT_LE(input.logprobs, kMaxLogprobs);
    const bool counts_outputs = input.presence_penalty != 0.0F || input.frequency_penalty != 0.0F;
    NINFER_ASSERT(!counts_outputs || input.output_counts != nullptr, "penalty without output counts");
    NINFER_ASSERT(input.repetition_penalty == 1.0F || input.seen_counts != nullptr, "penalty without seen counts");
    for (std::int64_t i = 0; i < input.bias_count; ++i) {
        NINFER_ASSERT_LE(0, input.bias[i].id);
        NINFER_ASSERT_LT(input.bias[i].id, tokens);
    }
}

}  // namespace ninfer
