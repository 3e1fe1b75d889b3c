#pragma once

// What the families have in common when they turn a WeightStore into a DecoderSpec: embedding, LM head and the MLP of a
// layer. Configurations share the field names vocab_size, hidden_size, intermediate_size and tied_embeddings.

#include <string>

#include "cpp/model/decoder_spec.h"
#include "cpp/weights/weight_store.h"

namespace ninfer {

template <typename Config>
void set_sizes_and_embeddings(const Config& config, const WeightStore& store, DecoderSpec& spec) {
    spec.vocab_size = config.vocab_size;
    spec.hidden_size = config.hidden_size;
    spec.intermediate_size = config.intermediate_size;
    spec.rms_norm_epsilon = static_cast<float>(config.rms_norm_epsilon);
    spec.rope.inverse = config.inverse_frequencies;
    spec.embedding = store.matrix("embed_tokens.weight", config.vocab_size, config.hidden_size);
    spec.lm_head =
        config.tied_embeddings ? spec.embedding : store.matrix("lm_head.weight", config.vocab_size, config.hidden_size);
}

template <typename Config>
void set_mlp(const Config& config, const WeightStore& store, const std::string& prefix, LayerWeights& layer) {
    layer.gate = store.matrix(prefix + "mlp.gate_proj.weight", config.intermediate_size, config.hidden_size);
    layer.up = store.matrix(prefix + "mlp.up_proj.weight", config.intermediate_size, config.hidden_size);
    layer.down = store.matrix(prefix + "mlp.down_proj.weight", config.hidden_size, config.intermediate_size);
}

}  // namespace ninfer
