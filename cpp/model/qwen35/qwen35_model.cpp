#include "cpp/model/qwen35/qwen35_model.h"

#include <cmath>
#include <string>

#include "cpp/base/assert.h"
#include "cpp/model/shared_weights.h"

namespace ninfer {

namespace {

class Builder {
   public:
    Builder(const Qwen35Config& config, WeightStore& store) : config_(config), store_(store) {}

    LayerWeights layer(std::int64_t index) const {
        const std::string prefix = "layers." + std::to_string(index) + ".";
        const auto hidden = config_.hidden_size;
        LayerWeights layer;
        layer.input_norm = centred_norm(prefix + "input_layernorm.weight", hidden);
        layer.post_attention_norm = centred_norm(prefix + "post_attention_layernorm.weight", hidden);
        if (config_.layer_is_recurrent[static_cast<std::size_t>(index)])
            layer.mixer = delta_net(prefix + "linear_attn.");
        else
            layer.mixer = attention(prefix + "self_attn.");
        set_mlp(config_, store_, prefix, layer);
        return layer;
    }

    // transformers computes output · (1 + weight); the op multiplies by one stored factor.
    const float* centred_norm(const std::string& name, std::int64_t size) const {
        return derive(name, size, "one_plus.", [](float weight) { return 1.0F + weight; });
    }

   private:
    AttentionWeights attention(const std::string& prefix) const {
        const auto hidden = config_.hidden_size;
        const auto kv_rows = config_.kv_heads * config_.head_dim;
        const auto query_rows = config_.heads * config_.head_dim;
        AttentionWeights weights;
        weights.query = store_.matrix(prefix + "q_proj.weight", 2 * query_rows, hidden);
        weights.key = store_.matrix(prefix + "k_proj.weight", kv_rows, hidden);
        weights.value = store_.matrix(prefix + "v_proj.weight", kv_rows, hidden);
        weights.output = store_.matrix(prefix + "o_proj.weight", hidden, query_rows);
        weights.query_norm = centred_norm(prefix + "q_norm.weight", config_.head_dim);
        weights.key_norm = centred_norm(prefix + "k_norm.weight", config_.head_dim);
        return weights;
    }

    DeltaNetWeights delta_net(const std::string& prefix) const {
        const auto hidden = config_.hidden_size;
        const auto value_heads = config_.linear_value_heads;
        const auto value_rows = value_heads * config_.linear_value_head_dim;
        const auto conv_rows = 2 * config_.linear_key_heads * config_.linear_key_head_dim + value_rows;
        DeltaNetWeights weights;
        weights.qkv = store_.matrix(prefix + "in_proj_qkv.weight", conv_rows, hidden);
        weights.z = store_.matrix(prefix + "in_proj_z.weight", value_rows, hidden);
        weights.b = store_.matrix(prefix + "in_proj_b.weight", value_heads, hidden);
        weights.a = store_.matrix(prefix + "in_proj_a.weight", value_heads, hidden);
        weights.output = store_.matrix(prefix + "out_proj.weight", hidden, value_rows);
        weights.conv = transposed_taps(prefix + "conv1d.weight", conv_rows);
        weights.decay_rate = derive(prefix + "A_log", value_heads, "exp.", [](float a_log) {
            return static_cast<float>(std::exp(static_cast<double>(a_log)));
        });
        weights.dt_bias = store_.vector(prefix + "dt_bias", static_cast<std::size_t>(value_heads));
        weights.norm = store_.vector(prefix + "norm.weight", static_cast<std::size_t>(config_.linear_value_head_dim));
        return weights;
    }

    template <typename Function>
    const float* derive(const std::string& name, std::int64_t size, const std::string& kind, Function function) const {
        const float* stored = store_.vector(name, static_cast<std::size_t>(size));
        std::vector<float> derived(stored, stored + size);
        for (auto& value : derived) value = function(value);
        return store_.derive(kind + name, std::move(derived));
    }

    // [channels][width] in the file, [width][channels] for the op.
    const float* transposed_taps(const std::string& name, std::int64_t channels) const {
        const auto width = config_.conv_width;
        const float* stored = store_.vector(name, static_cast<std::size_t>(channels * width));
        std::vector<float> taps(static_cast<std::size_t>(channels * width));
        for (std::int64_t channel = 0; channel < channels; ++channel)
            for (std::int64_t tap = 0; tap < width; ++tap)
                taps[static_cast<std::size_t>(tap * channels + channel)] = stored[channel * width + tap];
        return store_.derive("taps." + name, std::move(taps));
    }

    const Qwen35Config& config_;
    WeightStore& store_;
};

}  // namespace

DecoderSpec qwen35_decoder(const Qwen35Config& config, WeightStore& store) {
    NINFER_ASSERT_EQ(std::ssize(config.inverse_frequencies) * 2, config.rotary_dim);
    const Builder builder(config, store);
    DecoderSpec spec;
    set_sizes_and_embeddings(config, store, spec);
    spec.attention = {config.heads, config.kv_heads, config.head_dim, config.rotary_dim, 2 * config.head_dim};
    spec.recurrent = {config.linear_value_heads, config.linear_key_heads, config.linear_key_head_dim,
                      config.linear_value_head_dim, config.conv_width};
    spec.final_norm = builder.centred_norm("norm.weight", config.hidden_size);
    for (std::int64_t index = 0; index < std::ssize(config.layer_is_recurrent); ++index)
        spec.layers.push_back(builder.layer(index));
    return spec;
}

}  // namespace ninfer
