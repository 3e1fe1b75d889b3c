#pragma once

#include <cstdint>
#include <vector>

namespace ninfer {

// LlamaForCausalLM. Validated by the loader, asserted here.
struct LlamaConfig {
    std::int64_t vocab_size = 0;
    std::int64_t hidden_size = 0;
    std::int64_t intermediate_size = 0;
    std::int64_t layers = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    double rms_norm_epsilon = 0.0;
    std::vector<double> inverse_frequencies;  // [head_dim / 2]
    bool tied_embeddings = false;
};

}  // namespace ninfer
