#pragma once

// A decoder-only transformer as data: sizes and weight views. Families (llama/, qwen35/) build one from their
// configuration and a WeightStore; decoder.cpp computes it.

#include <cstdint>
#include <variant>
#include <vector>

#include "cpp/ops/norm_rope_append.h"
#include "cpp/ops/rope_table.h"
#include "cpp/tensor/recurrent_state_view.h"
#include "cpp/tensor/weight_view.h"

namespace ninfer {

struct AttentionWeights {
    WeightView query;  // [heads · query_head_stride, hidden]; with an output gate interleaved per head
    WeightView key;
    WeightView value;
    WeightView output;
    const float* query_norm = nullptr;
    const float* key_norm = nullptr;
};

struct DeltaNetWeights {
    WeightView qkv;
    WeightView z;
    WeightView b;
    WeightView a;
    WeightView output;
    const float* conv = nullptr;  // [conv_width][conv_channels]
    const float* decay_rate = nullptr;
    const float* dt_bias = nullptr;
    const float* norm = nullptr;
};

struct LayerWeights {
    const float* input_norm = nullptr;
    const float* post_attention_norm = nullptr;
    std::variant<AttentionWeights, DeltaNetWeights> mixer;
    WeightView gate;
    WeightView up;
    WeightView down;
};

struct DecoderSpec {
    std::int64_t vocab_size = 0;
    std::int64_t hidden_size = 0;
    std::int64_t intermediate_size = 0;
    float rms_norm_epsilon = 0.0F;
    AttentionShape attention;  // query_head_stride = 2 · head_dim means a sigmoid output gate (Qwen3.5)
    RopeFrequencies rope;
    RecurrentStateLayout recurrent;  // zero heads: no recurrent layers
    WeightView embedding;
    WeightView lm_head;
    const float* final_norm = nullptr;
    std::vector<LayerWeights> layers;

    bool has_output_gate() const { return attention.query_head_stride == 2 * attention.head_dim; }
};

}  // namespace ninfer
