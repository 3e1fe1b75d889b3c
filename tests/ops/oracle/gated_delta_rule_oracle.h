#pragma once

// FP64 oracle of cpp/ops/gated_delta_rule.h for one value head of one sequence, from the contract alone.

#include <cmath>
#include <vector>

namespace ninfer::oracle {

struct DeltaRuleToken {
    std::vector<double> q;
    std::vector<double> k;
    std::vector<double> v;
    double a = 0.0;
    double b = 0.0;
};

struct DeltaRuleHead {
    double decay_rate = 0.0;
    double dt_bias = 0.0;
    std::vector<std::vector<double>> state;  // [key_dim][value_dim], carried from token to token
};

inline std::vector<double> unit_vector(std::vector<double> x, double scale) {
    double sum = 0.0;
    for (const double value : x) sum += value * value;
    for (double& value : x) value *= scale / std::sqrt(sum + 1e-6);
    return x;
}

// Output of one token; advances head.state.
inline std::vector<double> gated_delta_rule(DeltaRuleHead& head, const DeltaRuleToken& token) {
    const auto k = unit_vector(token.k, 1.0);
    const auto q = unit_vector(token.q, 1.0 / std::sqrt(static_cast<double>(token.q.size())));
    const double decay = std::exp(-head.decay_rate * std::log1p(std::exp(token.a + head.dt_bias)));
    const double beta = 1.0 / (1.0 + std::exp(-token.b));
    std::vector<double> output(token.v.size(), 0.0);
    for (std::size_t j = 0; j < token.v.size(); ++j) {
        double recalled = 0.0;
        for (std::size_t i = 0; i < k.size(); ++i) {
            head.state[i][j] *= decay;
            recalled += k[i] * head.state[i][j];
        }
        const double delta = (token.v[j] - recalled) * beta;
        for (std::size_t i = 0; i < k.size(); ++i) {
            head.state[i][j] += k[i] * delta;
            output[j] += q[i] * head.state[i][j];
        }
    }
    return output;
}

// |difference| relative to the largest |output| (or |state|) of the head over the whole run: the recurrence forgets
// roundings as it forgets inputs, so the error does not grow with the length of the run.
inline constexpr double kGatedDeltaRuleTolerance = 1e-5;

}  // namespace ninfer::oracle
