#pragma once

// From where a prompt may start: nowhere (root), or a checkpoint whose identity was compared with the prompt, token by
// token (candidate_verification.h). A candidate fixes the source and how many tokens it saves; not what becomes of
// anybody else, nor whether bytes move. It holds as long as the checkpoint's handle does: neither prompt nor checkpoint
// ever changes.

#include "cpp/program/sequence_request.h"

namespace ninfer {

struct AdmissionCandidate {
    CheckpointHandle source = {};  // none: root
    SourceUse use = SourceUse::kRetain;
    std::int64_t frontier = 0;       // tokens that need not be computed
    std::int64_t prompt_tokens = 0;  // of the prompt with which it was compared
    bool truncated = false;          // less than the source has

    bool is_root() const noexcept { return source == CheckpointHandle{}; }
    bool takes_owner() const noexcept { return !is_root() && use != SourceUse::kRetain; }
};

}  // namespace ninfer
