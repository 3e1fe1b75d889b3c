#pragma once

// Computes one unit of a decoder: a ragged batch of sequences, each with one or more consecutive rows.
//
// Life of a unit: 1. embedding and rope table; 2. per layer: norm, mixer (attention over pages, or Gated DeltaNet over
// the state image), residual add + norm, SwiGLU MLP; 3. final norm and LM head only for rows whose logits are wanted.
// All intermediate memory is taken from the context's scratch. Logits of a row depend only on weights, storage formats
// and the token prefix (X1 of docs/design/numerics.md).

#include <cstdint>
#include <span>

#include "cpp/model/decoder_spec.h"
#include "cpp/model/sequence_rows.h"
#include "cpp/model/state_image_layout.h"
#include "cpp/ops/op_table.h"

namespace ninfer {

struct DecoderUnit {
    std::span<const SequenceRows> sequences;
    KvPoolView kv_pool;
    MatrixView logits;  // [sum of wanted rows, vocab_size], in the order of the sequences
};

class Decoder {
   public:
    // Most sequences in one unit.
    static constexpr std::int64_t kMaxSequences = 8;

    Decoder(DecoderSpec spec, KvStorage kv_storage);

    const DecoderSpec& spec() const noexcept { return spec_; }
    const StateImageLayout& state_layout() const noexcept { return state_layout_; }
    const PageGroupLayout& page_layout() const noexcept { return page_layout_; }

    // Upper bound of the scratch that run() takes for a unit of at most `rows` rows.
    std::size_t scratch_bytes(std::int64_t rows, int threads) const;

    void run(OpContext& context, const OpTable& ops, const DecoderUnit& unit) const;

   private:
    struct Workspace;

    void run_attention(Workspace& work, const AttentionWeights& weights, std::int64_t index) const;
    void run_delta_net(Workspace& work, const DeltaNetWeights& weights, std::int64_t index) const;
    void run_mlp(Workspace& work, const LayerWeights& layer) const;
    void run_lm_head(Workspace& work, const DecoderUnit& unit) const;

    DecoderSpec spec_;
    StateImageLayout state_layout_;
    PageGroupLayout page_layout_;
};

}  // namespace ninfer
