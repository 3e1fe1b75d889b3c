#pragma once

#include <cstdint>
#include <vector>

#include "cpp/ops/sampling.h"

namespace ninfer::bindings {

// A SamplerInput that owns its mask and bias; filled once per request, read in every round.
struct Sampler {
    SamplerInput input;
    std::vector<std::uint32_t> mask;
    std::vector<LogitBias> bias;

    SamplerInput view() const {
        SamplerInput result = input;
        result.token_mask = mask.empty() ? nullptr : mask.data();
        result.bias = bias.data();
        result.bias_count = static_cast<std::int64_t>(bias.size());
        return result;
    }
};

}  // namespace ninfer::bindings
