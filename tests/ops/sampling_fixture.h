#pragma once

// Rows of logits with their sampler inputs, for the tests of cpp/ops/sampling.h.

#include <limits>
#include <random>
#include <vector>

#include "cpp/ops/sampling.h"
#include "tests/ops/op_fixture.h"

namespace ninfer::testing_support {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// One row, and storage for what its input points to. Columns beyond valid_tokens hold the largest logits of all, which
// must never be seen.
struct SamplingCase {
    explicit SamplingCase(std::vector<float> values, std::int64_t padding = 0)
        : logits(std::move(values)), padded(logits) {
        padded.resize(logits.size() + static_cast<std::size_t>(padding), kInfinity);
    }
    static SamplingCase normal(std::int64_t tokens, double scale, std::uint64_t seed, std::int64_t padding = 0) {
        NormalSource source(seed, scale);
        std::vector<float> values(static_cast<std::size_t>(tokens));
        for (auto& value : values) value = static_cast<float>(source());
        return SamplingCase(std::move(values), padding);
    }

    std::int64_t tokens() const { return static_cast<std::int64_t>(logits.size()); }

    SamplingCase& forbid(const std::vector<std::size_t>& ids) {
        if (mask.empty()) mask.assign((logits.size() + 31) / 32, ~0U);
        for (const auto id : ids) mask[id / 32] &= ~(1U << (id % 32));
        input.token_mask = mask.data();
        return *this;
    }
    SamplingCase& add_bias(std::vector<LogitBias> list) {
        bias = std::move(list);
        input.bias = bias.data();
        input.bias_count = static_cast<std::int64_t>(bias.size());
        return *this;
    }
    SamplingCase& penalise(float presence, float frequency, float repetition, std::uint64_t seed) {
        std::mt19937_64 engine(seed);
        for (std::size_t i = 0; i < logits.size(); ++i) {
            output_counts.push_back(engine() % 4 == 0 ? static_cast<std::uint32_t>(engine() % 5) : 0U);
            seen_counts.push_back(output_counts.back() + static_cast<std::uint32_t>(engine() % 2));
        }
        input.presence_penalty = presence;
        input.frequency_penalty = frequency;
        input.repetition_penalty = repetition;
        input.output_counts = output_counts.data();
        input.seen_counts = seen_counts.data();
        return *this;
    }

    std::vector<float> logits;
    std::vector<float> padded;
    SamplerInput input;
    std::vector<std::uint32_t> mask;
    std::vector<LogitBias> bias;
    std::vector<std::uint32_t> output_counts;
    std::vector<std::uint32_t> seen_counts;
};

// Samples the same logits once per input, as the rows of one batch.
inline std::vector<SampledToken> sample_batch(const OpTable& ops, const SamplingCase& test,
                                              const std::vector<SamplerInput>& inputs, int threads = 2) {
    const auto rows = static_cast<std::int64_t>(inputs.size());
    const auto columns = static_cast<std::int64_t>(test.padded.size());
    OpEnvironment environment(threads, sampling_scratch_bytes(rows, columns));
    std::vector<SampledToken> outputs(inputs.size());
    // A row stride of 0: every row reads the same memory.
    ops.sample(environment.context(),
               {{test.padded.data(), rows, columns, 0}, test.tokens(), inputs.data(), outputs.data()});
    return outputs;
}

inline SampledToken sample_one(const OpTable& ops, const SamplingCase& test, int threads = 1) {
    return sample_batch(ops, test, {test.input}, threads)[0];
}

}  // namespace ninfer::testing_support
