#pragma once

// The ops of one backend variant. Models call ops only through this table; which variant is chosen once at load.

#include "cpp/ops/causal_conv1d.h"
#include "cpp/ops/embedding.h"
#include "cpp/ops/gated_delta_rule.h"
#include "cpp/ops/gated_rms_norm.h"
#include "cpp/ops/linear.h"
#include "cpp/ops/norm_rope_append.h"
#include "cpp/ops/paged_attention.h"
#include "cpp/ops/rms_norm.h"
#include "cpp/ops/sampling.h"
#include "cpp/ops/sigmoid_gate.h"
#include "cpp/ops/swiglu.h"

namespace ninfer {

struct OpTable {
    void (*embedding)(OpContext&, const EmbeddingArgs&);
    void (*rms_norm)(OpContext&, const RmsNormArgs&);
    void (*linear)(OpContext&, const LinearArgs&);
    void (*norm_rope_append)(OpContext&, const NormRopeAppendArgs&);
    void (*paged_attention)(OpContext&, const PagedAttentionArgs&);
    void (*sigmoid_gate)(OpContext&, const SigmoidGateArgs&);
    void (*swiglu)(OpContext&, const SwigluArgs&);
    void (*causal_conv1d)(OpContext&, const CausalConv1dArgs&);
    void (*gated_delta_rule)(OpContext&, const GatedDeltaRuleArgs&);
    void (*gated_rms_norm)(OpContext&, const GatedRmsNormArgs&);
    void (*sample)(OpContext&, const SamplingArgs&);
};

}  // namespace ninfer
