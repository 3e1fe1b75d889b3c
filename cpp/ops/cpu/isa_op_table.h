#pragma once

// Declarations of the per-instruction-set ops; only for sources compiled once per instruction set.

#include "cpp/ops/op_table.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

void embedding(OpContext& context, const EmbeddingArgs& args);
void rms_norm(OpContext& context, const RmsNormArgs& args);
void linear(OpContext& context, const LinearArgs& args);
void norm_rope_append(OpContext& context, const NormRopeAppendArgs& args);
void paged_attention(OpContext& context, const PagedAttentionArgs& args);
void sigmoid_gate(OpContext& context, const SigmoidGateArgs& args);
void swiglu(OpContext& context, const SwigluArgs& args);
void causal_conv1d(OpContext& context, const CausalConv1dArgs& args);
void gated_delta_rule(OpContext& context, const GatedDeltaRuleArgs& args);
void gated_rms_norm(OpContext& context, const GatedRmsNormArgs& args);
void sample(OpContext& context, const SamplingArgs& args);

extern const OpTable kOpTable;

}  // namespace ninfer::NINFER_ISA_NAMESPACE
