#include "cpp/model/llama/llama_model.h"

#include <string>

#include "cpp/base/assert.h"

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
    layer.gate = matrix("mlp.gate_proj.weight", config.intermediate_size, hidden);
    layer.up = matrix("mlp.up_proj.weight", config.intermediate_size, hidden);
    layer.down = matrix("mlp.down_proj.weight", hidden, config.intermediate_size);
    return layer;
}

}  // namespace

DecoderSpec llama_decoder(const LlamaConfig& config, const WeightStore& store) {
    NINFER_ASSERT_EQ(std::ssize(config.inverse_frequencies) * 2, config.head_dim);
    DecoderSpec spec;
    spec.vocab_size = config.vocab_size;
    spec.hidden_size = config.hidden_size;
    spec.intermediate_size = config.intermediate_size;
    spec.rms_norm_epsilon = static_cast<float>(config.rms_norm_epsilon);
    spec.attention = {config.heads, config.kv_heads, config.head_dim, config.head_dim, config.head_dim};
    spec.rope.inverse = config.inverse_frequencies;
    spec.embedding = store.matrix("embed_tokens.weight", config.vocab_size, config.hidden_size);
    spec.lm_head =
        config.tied_embeddings ? spec.embedding : store.matrix("lm_head.weight", config.vocab_size, config.hidden_size);
    spec.final_norm = store.vector("norm.weight", static_cast<std::size_t>(config.hidden_size));
    for (std::int64_t index = 0; index < config.layers; ++index)
        spec.layers.push_back(layer_weights(config, store, index));
    return spec;
}

}  // namespace ninfer
