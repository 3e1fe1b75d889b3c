#pragma once

#include <span>
#include <vector>

#include "cpp/program/admission_candidate.h"
#include "cpp/program/context_state.h"
#include "cpp/program/prompt_view.h"

namespace ninfer {

struct CandidateSource {
    CheckpointHandle checkpoint;
    SourceUse use = SourceUse::kRetain;
};

// The candidates of a prompt that is not empty: root first, then one per source that can serve it, in the order of the
// sources. At least one token of the prompt is left to compute. A model with recurrent layers starts at the checkpoint's
// frontier or not at all; without, at the longest common prefix that the checkpoint has, and a checkpoint that would be
// cut is never continued but consumed. Left out: what differs from the prompt, whose image is still to come, and, unless
// it is retained, what belongs to an active or a shared owner. kStaleHandle.
Result<std::vector<AdmissionCandidate>, Refusal> verify_candidates(ContextState& state, const PromptView& prompt,
                                                                   std::span<const CandidateSource> sources);

}  // namespace ninfer
