#pragma once

// Picks the next token of each row from its logits.
//
// Order: token mask, logit bias, penalties, temperature, top-k, top-p, min-p. temperature 0 or top_p 0 means the best
// token (after mask, bias and penalties); top_k <= 0, top_p >= 1, min_p <= 0 mean off.
//   mask      bit (id % 32) of word id / 32; 0 = forbidden. nullptr: all allowed. Ids >= valid_tokens are always
//             forbidden
//   bias      logit += bias[i].value, in list order; ids are valid tokens (asserted)
//   penalties in this order. repetition (> 0): logit > 0 ? logit / repetition : logit · repetition if
//             seen_counts[id] > 0 (prompt and output); frequency: logit -= frequency · output_counts[id]; presence:
//             logit -= presence if output_counts[id] > 0
//   top_k     the k largest; ties at the border go to the lower ids
//   top_p     the smallest set of the most probable tokens whose probability (of the top-k set) reaches top_p
//   min_p     tokens with probability >= min_p · the largest probability
// A logit that is then NaN or -inf counts as forbidden. A row of which every token is forbidden yields token -1 (an
// expected no, the caller's to name). Ties in arg-max go to the lowest id. Candidates are ordered by (logit descending,
// id ascending).
//
// Numerics: weight = e^((logit - best) / temperature) in f32, 1 where logit equals best (also +inf); mass = weight in
// units of 2^-42, rounded down to an integer. Sums of masses are exact, so they have no order (N-8 of
// docs/design/numerics.md); a token below e^-29 of the best has no mass. temperature is finite, at least 0, and 0 if
// below the smallest normal f32. The draw: u = 64 bits of Philox 4x32-10 (cpp/ops/philox.h) at (seed, output_index);
// the token is the first in ascending id whose cumulative mass over the kept tokens exceeds floor(u · total / 2^64). A
// row's token depends on its own inputs alone, never on the batch, and not on filters that keep everything.
//
// Log-probabilities describe the model's own distribution, log_softmax(logits) over the valid tokens, before any of the
// above: of the chosen token, and of the min(logprobs, valid_tokens) most probable tokens (logprobs <= kMaxLogprobs),
// ordered like candidates; -inf becomes -9999.0, also for token -1. The normaliser is a sum of masses at temperature 1.
// Scratch: sampling_scratch_bytes(rows, vocab_size).

#include <cstddef>
#include <cstdint>

#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"

namespace ninfer {

inline constexpr std::int64_t kMaxLogprobs = 20;
inline constexpr float kImpossibleLogprob = -9999.0F;

struct LogitBias {
    std::int32_t id = 0;
    float value = 0.0F;
};

struct SamplerInput {
    float temperature = 0.0F;
    float top_p = 1.0F;
    float min_p = 0.0F;
    std::int32_t top_k = 0;
    float presence_penalty = 0.0F;
    float frequency_penalty = 0.0F;
    float repetition_penalty = 1.0F;
    std::uint64_t seed = 0;
    std::uint64_t output_index = 0;
    std::int32_t logprobs = -1;  // -1: none at all, 0: of the chosen token only
    const std::uint32_t* token_mask = nullptr;
    const LogitBias* bias = nullptr;
    std::int64_t bias_count = 0;
    const std::uint32_t* output_counts = nullptr;  // [vocab_size], needed by presence and frequency
    const std::uint32_t* seen_counts = nullptr;    // [vocab_size], needed by repetition
};

struct SampledToken {
    std::int32_t id = -1;
    float logprob = 0.0F;
    std::int32_t top_count = 0;
    std::int32_t top_ids[kMaxLogprobs] = {};
    float top_logprobs[kMaxLogprobs] = {};
};

struct SamplingArgs {
    ConstMatrixView logits;  // [rows, vocab_size], not modified
    std::int64_t valid_tokens = 0;
    const SamplerInput* inputs = nullptr;  // [rows]
    SampledToken* outputs = nullptr;       // [rows]
};

std::size_t sampling_scratch_bytes(std::int64_t rows, std::int64_t vocab_size);

}  // namespace ninfer
