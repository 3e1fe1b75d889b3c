#pragma once

// FP64 oracle of cpp/ops/sampling.h for one row, from the contract alone. Adjustments are single f32 operations, as the
// contract defines them; everything after is f64.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cpp/ops/sampling.h"

namespace ninfer::oracle {

inline constexpr double kForbidden = -std::numeric_limits<double>::infinity();

// In units of probability, of the border of a draw and of a filter: f32 weights and masses of 2^-42.
inline constexpr double kSamplingTolerance = 2e-6;
// Absolute, for logits up to 100: rounding of the logit and of the logarithm.
inline constexpr double kLogprobTolerance = 2e-5;

inline std::vector<double> adjusted_logits(const std::vector<float>& logits, const SamplerInput& input) {
    std::vector<float> values = logits;
    for (std::size_t id = 0; id < values.size(); ++id)
        if (input.token_mask != nullptr && (input.token_mask[id / 32] >> (id % 32) & 1U) == 0)
            values[id] = -std::numeric_limits<float>::infinity();
    for (std::int64_t i = 0; i < input.bias_count; ++i)
        values[static_cast<std::size_t>(input.bias[i].id)] += input.bias[i].value;
    for (std::size_t id = 0; id < values.size(); ++id) {
        float& z = values[id];
        if (input.seen_counts != nullptr && input.seen_counts[id] > 0)
            z = z > 0.0F ? z / input.repetition_penalty : z * input.repetition_penalty;
        if (input.output_counts != nullptr && input.output_counts[id] > 0) {
            z -= input.frequency_penalty * static_cast<float>(input.output_counts[id]);
            z -= input.presence_penalty;
        }
    }
    std::vector<double> result(values.begin(), values.end());
    for (double& z : result)
        if (std::isnan(z)) z = kForbidden;
    return result;
}

// Ids by (logit descending, id ascending), forbidden ones last.
inline std::vector<std::size_t> candidate_order(const std::vector<double>& logits) {
    std::vector<std::size_t> order(logits.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
    return order;
}

// e^((z - best) / temperature); 1 at the best, also where it is infinite.
inline std::vector<double> softmax_weights(const std::vector<double>& logits, double temperature) {
    const double best = *std::max_element(logits.begin(), logits.end());
    std::vector<double> weights;
    for (const double z : logits) weights.push_back(z == best ? 1.0 : std::exp((z - best) / temperature));
    return weights;
}

struct SamplingAnswer {
    std::vector<double> probability;  // per id, of the kept tokens; empty: nothing is allowed
    double ambiguous = 0.0;           // probability of tokens that lie within the tolerance of a filter's border
};

inline SamplingAnswer filtered_distribution(const std::vector<double>& logits, const SamplerInput& input) {
    SamplingAnswer answer;
    const auto order = candidate_order(logits);
    if (logits[order[0]] == kForbidden) return answer;
    answer.probability.assign(logits.size(), 0.0);
    if (input.temperature == 0.0F || input.top_p <= 0.0F) {
        answer.probability[order[0]] = 1.0;
        return answer;
    }
    const auto weights = softmax_weights(logits, input.temperature);
    std::size_t kept = 0;
    double total = 0.0;
    const std::size_t limit = input.top_k > 0 ? static_cast<std::size_t>(input.top_k) : logits.size();
    for (; kept < std::min(limit, logits.size()) && logits[order[kept]] != kForbidden; ++kept)
        total += weights[order[kept]];
    double reached = 0.0;
    for (std::size_t i = 0; i < kept && input.top_p < 1.0F; ++i) {
        reached += weights[order[i]] / total;
        if (std::abs(reached - input.top_p) < kSamplingTolerance) answer.ambiguous += 2.0 * weights[order[i]] / total;
        if (reached >= input.top_p) kept = i + 1;
    }
    double sum = 0.0;
    for (std::size_t i = 0; i < kept; ++i) {
        const double weight = weights[order[i]];
        if (std::abs(weight - input.min_p) < kSamplingTolerance * input.min_p) answer.ambiguous += weight / total;
        if (weight >= input.min_p) answer.probability[order[i]] = weight;
        sum += answer.probability[order[i]];
    }
    for (double& p : answer.probability) p /= sum;
    return answer;
}

// log_softmax of the model's own logits.
inline std::vector<double> log_probabilities(const std::vector<float>& logits) {
    std::vector<double> z(logits.begin(), logits.end());
    for (double& value : z)
        if (std::isnan(value)) value = kForbidden;
    const double best = *std::max_element(z.begin(), z.end());
    double sum = 0.0;
    for (const double value : z) sum += value == best ? 1.0 : std::exp(value - best);
    for (double& value : z) {
        value = value == kForbidden ? kImpossibleLogprob : (value == best ? 0.0 : value - best) - std::log(sum);
        if (value == kForbidden) value = kImpossibleLogprob;
    }
    return z;
}

}  // namespace ninfer::oracle
