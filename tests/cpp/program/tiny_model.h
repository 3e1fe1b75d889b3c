#pragma once

// A seeded random hybrid (two recurrent layers around one attention layer) small enough for thousands of rounds, with
// decays slow enough that a wrong state shows in later logits.

#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "cpp/model/qwen35/qwen35_model.h"
#include "cpp/weights/weight_loader.h"

namespace ninfer::testing_support {

struct TinyModel {
    std::shared_ptr<WeightStore> store;
    DecoderSpec spec;
};

inline Qwen35Config tiny_config() {
    Qwen35Config config;
    config.vocab_size = 96;
    config.hidden_size = 64;
    config.intermediate_size = 80;
    config.heads = 4;
    config.kv_heads = 2;
    config.head_dim = 16;
    config.rotary_dim = 8;
    config.rms_norm_epsilon = 1e-6;
    config.inverse_frequencies = {1.0, 0.1, 0.01, 0.001};
    config.tied_embeddings = true;
    config.layer_is_recurrent = {true, false, true};
    config.linear_key_heads = 2;
    config.linear_value_heads = 4;
    config.linear_key_head_dim = 16;
    config.linear_value_head_dim = 24;
    config.conv_width = 4;
    return config;
}

// The same without recurrent layers: no state axis.
inline Qwen35Config tiny_attention_config() {
    auto config = tiny_config();
    config.layer_is_recurrent = {false, false};
    return config;
}

class TinyModelBuilder {
   public:
    TinyModelBuilder(std::uint64_t seed, WeightStorage storage, Qwen35Config config = tiny_config())
        : engine_(seed), storage_(storage), config_(std::move(config)), loader_(1) {}

    TinyModel build() {
        const auto& config = config_;
        matrix("embed_tokens.weight", config.vocab_size, config.hidden_size, 1.0);
        vector("norm.weight", config.hidden_size, 0.1, 0.0);
        for (std::size_t layer = 0; layer < config.layer_is_recurrent.size(); ++layer) add_layer(config, layer);
        return {loader_.store(), qwen35_decoder(config, *loader_.store())};
    }

   private:
    void add_layer(const Qwen35Config& config, std::size_t layer) {
        const std::string prefix = "layers." + std::to_string(layer) + ".";
        const auto hidden = config.hidden_size;
        vector(prefix + "input_layernorm.weight", hidden, 0.1, 0.0);
        vector(prefix + "post_attention_layernorm.weight", hidden, 0.1, 0.0);
        matrix(prefix + "mlp.gate_proj.weight", config.intermediate_size, hidden, 1.0);
        matrix(prefix + "mlp.up_proj.weight", config.intermediate_size, hidden, 1.0);
        matrix(prefix + "mlp.down_proj.weight", hidden, config.intermediate_size, 1.0);
        if (config.layer_is_recurrent[layer])
            add_delta_net(config, prefix + "linear_attn.");
        else
            add_attention(config, prefix + "self_attn.");
    }

    void add_attention(const Qwen35Config& config, const std::string& prefix) {
        const auto hidden = config.hidden_size;
        const auto query_rows = config.heads * config.head_dim;
        const auto kv_rows = config.kv_heads * config.head_dim;
        matrix(prefix + "q_proj.weight", 2 * query_rows, hidden, 1.0);
        matrix(prefix + "k_proj.weight", kv_rows, hidden, 1.0);
        matrix(prefix + "v_proj.weight", kv_rows, hidden, 1.0);
        matrix(prefix + "o_proj.weight", hidden, query_rows, 1.0);
        vector(prefix + "q_norm.weight", config.head_dim, 0.1, 0.0);
        vector(prefix + "k_norm.weight", config.head_dim, 0.1, 0.0);
    }

    void add_delta_net(const Qwen35Config& config, const std::string& prefix) {
        const auto hidden = config.hidden_size;
        const auto value_rows = config.linear_value_heads * config.linear_value_head_dim;
        const auto conv_rows = 2 * config.linear_key_heads * config.linear_key_head_dim + value_rows;
        matrix(prefix + "in_proj_qkv.weight", conv_rows, hidden, 1.0);
        matrix(prefix + "in_proj_z.weight", value_rows, hidden, 1.0);
        matrix(prefix + "in_proj_b.weight", config.linear_value_heads, hidden, 1.0);
        matrix(prefix + "in_proj_a.weight", config.linear_value_heads, hidden, 0.2);
        matrix(prefix + "out_proj.weight", hidden, value_rows, 1.0);
        vector(prefix + "conv1d.weight", conv_rows * config.conv_width, 0.5, 0.0);
        vector(prefix + "dt_bias", config.linear_value_heads, 0.1, 0.0);
        // decay = exp(-exp(A_log) · softplus(..)): half-lives of roughly 20 to 500 tokens.
        vector(prefix + "A_log", config.linear_value_heads, 1.0, -4.5);
        vector(prefix + "norm.weight", config.linear_value_head_dim, 0.1, 1.0);
    }

    std::vector<float> normals(std::int64_t count, double scale, double mean) {
        std::normal_distribution<double> normal(mean, scale);
        std::vector<float> values(static_cast<std::size_t>(count));
        for (auto& value : values) value = static_cast<float>(normal(engine_));
        return values;
    }
    void matrix(const std::string& name, std::int64_t out, std::int64_t in, double gain) {
        const auto values = normals(out * in, gain / std::sqrt(static_cast<double>(in)), 0.0);
        loader_.add_matrix({name, out, in, storage_}, std::as_bytes(std::span(values)), FileEncoding::kF32, "test");
    }
    void vector(const std::string& name, std::int64_t size, double scale, double mean) {
        loader_.add_vector(name, normals(size, scale, mean));
    }

    std::mt19937_64 engine_;
    WeightStorage storage_;
    Qwen35Config config_;
    WeightLoader loader_;
};

}  // namespace ninfer::testing_support
