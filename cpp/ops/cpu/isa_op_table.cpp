#include "cpp/ops/cpu/isa_op_table.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

const OpTable kOpTable = {
    .embedding = embedding,
    .rms_norm = rms_norm,
    .linear = linear,
    .norm_rope_append = norm_rope_append,
    .paged_attention = paged_attention,
    .sigmoid_gate = sigmoid_gate,
    .swiglu = swiglu,
    .causal_conv1d = causal_conv1d,
    .gated_delta_rule = gated_delta_rule,
    .gated_rms_norm = gated_rms_norm,
    .sample = sample,
};

}  // namespace ninfer::NINFER_ISA_NAMESPACE
