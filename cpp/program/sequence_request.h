#pragma once

// What a new active sequence is to be, and from where it starts.

#include <cstdint>
#include <optional>
#include <string_view>

#include "cpp/program/identity_header.h"
#include "cpp/program/owner.h"

namespace ninfer {

struct SequenceRequest {
    std::int64_t tokens = 0;    // prompt and all output, what is inherited included
    bool count_tokens = false;  // as penalties need
    std::int64_t captures = 0;  // captures at frontiers inside a page: each needs a page for the writer's copy
    IdentityHeader header = {};
};

// What becomes of the checkpoint from which a sequence starts, and of its owner.
enum class SourceUse : std::uint8_t {
    kRetain,  // both stay as they are; the sequence has an owner of its own
    kConsume,  // the owner, a private one, becomes the sequence's, with the checkpoints that are not deeper than the start;
    // the source and the deeper ones are deleted. Its bytes are continued in place where nobody else sees them
    kContinue,  // the same, but the source stays, as a checkpoint of the sequence's owner: its bytes are shared
};

inline constexpr std::int64_t kSourceUses = 3;

std::string_view to_string(SourceUse use) noexcept;

struct SequenceSource {
    CheckpointHandle checkpoint;
    SourceUse use = SourceUse::kRetain;
    std::optional<std::int64_t> frontier = {};  // less than the checkpoint's: only for models without recurrent layers
};

}  // namespace ninfer
