#pragma once

#include <cstdint>
#include <vector>

namespace ninfer {

// Text part of Qwen3.5 (transformers: Qwen3_5TextConfig). Validated by the loader, asserted here.
struct Qwen35Config {
    std::int64_t vocab_size = 0;
    std::int64_t hidden_size = 0;
    std::int64_t intermediate_size = 0;
    std::int64_t heads = 0;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;
    std::int64_t rotary_dim = 0;
    double rms_norm_epsilon = 0.0;
    std::vector<double> inverse_frequencies;  // [rotary_dim / 2]
    bool tied_embeddings = false;
    std::vector<bool> layer_is_recurrent;  // one per layer: Gated DeltaNet, else gated full attention
    std::int64_t linear_key_heads = 0;
    std::int64_t linear_value_heads = 0;
    std::int64_t linear_key_head_dim = 0;
    std::int64_t linear_value_head_dim = 0;
    std::int64_t conv_width = 0;
};

}  // namespace ninfer
