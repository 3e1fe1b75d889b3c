#include "cpp/model/llama/llama_model.h"

#include <string>

#include "cpp/base/assert.h"
#include "cpp/model/shared_weights.h"

namespace ninfer {

namespace {

LayerWeights layer_weights(const LlamaConfig& config, const WeightStore& store, std::int64_t index) {
    const std::string prefix = "layers." + std::to_string(index) + ".";
    const auto matrix = [&](const char* name, std::int64_t out, std::int64_t in) {
        return store.matrix(prefix + name, out, in);
    };
    const auto hidden = config.hidden_size;
    const auto kv_rows = config.kv_heads * config.head_dim;
    const auto query_rows = config.heads * config.head_dim;
    AttentionWeights attention;
    attention.query = matrix("self_attn.q_proj.weight", query_rows, hidden);
    attention.key = matrix("self_attn.k_proj.weight", kv_rows, hidden);
    attention.value = matrix("self_attn.v_proj.weight", kv_rows, hidden);
    attention.output = matrix("self_attn.o_proj.weight", hidden, query_rows);
    LayerWeights layer;
    layer.input_norm = store.vector(prefix + "input_layernorm.weight", static_cast<std::size_t>(hidden));
    layer.post_attention_norm =
        store.vector(prefix + "post_attention_layernorm.weight", static_cast<std::size_t>(hidden));
    layer.mixer = attention;
    set_mlp(config, store, prefix, layer);
    return layer;
}

}  // namespace

DecoderSpec llama_decoder(const LlamaConfig& config, const WeightStore& store) {
    NINFER_ASSERT_EQ(std::ssize(config.inverse_frequencies) * 2, config.head_dim);
    DecoderSpec spec;
    set_sizes_and_embeddings(config, store, spec);
    spec.attention = {config.heads, config.kv_heads, config.head_dim, config.head_dim, config.head_dim};
    spec.final_norm = store.vector("norm.weight", static_cast<std::size_t>(config.hidden_size));
    for (std::int64_t index = 0; index < config.layers; ++index)
        spec.layers.push_back(layer_weights(config, store, index));
    return spec;
}

}  // namespace ninfer
