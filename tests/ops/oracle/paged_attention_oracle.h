#pragma once

// FP64 oracle of cpp/ops/paged_attention.h, from the contract alone: plain softmax over the keys 0..p of one query.

#include <algorithm>
#include <cmath>
#include <vector>

namespace ninfer::oracle {

// keys, values: one vector of head_dim features per position 0..p.
inline std::vector<double> attention(const std::vector<float>& query, double scale,
                                     const std::vector<std::vector<double>>& keys,
                                     const std::vector<std::vector<double>>& values) {
    std::vector<double> weights;
    for (const auto& key : keys) {
        double score = 0.0;
        for (std::size_t d = 0; d < key.size(); ++d) score += query[d] * key[d];
        weights.push_back(score * scale);
    }
    const double maximum = *std::max_element(weights.begin(), weights.end());
    double sum = 0.0;
    for (auto& weight : weights) sum += weight = std::exp(weight - maximum);
    std::vector<double> output(query.size());
    for (std::size_t j = 0; j < values.size(); ++j)
        for (std::size_t d = 0; d < output.size(); ++d) output[d] += weights[j] / sum * values[j][d];
    return output;
}

// Relative to the largest |value|: scores of at most 256 products around 10 in f32 move a weight by 1e-5 of itself.
inline constexpr double kPagedAttentionTolerance = 1e-5;

}  // namespace ninfer::oracle
