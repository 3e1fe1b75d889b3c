#pragma once

// One active sequence: what it has computed, and what it holds of the stores.
//
// Life of a sequence: 1. opened empty, or from a checkpoint, with its whole growth reserved (pages for `reserved` tokens
// and for its captures, an active state image, a lane); one that waits for a copy of its tail or of its image computes
// nothing before that has settled; 2. tokens are appended to its ledger; 3. units compute them in order, `computed`
// grows; 4. the unit that computes the last ledger token yields a sampled token in a pending batch; commit appends it,
// abort does not; 5. captures publish checkpoints at `computed` and the sequence goes on; 6. finished: it becomes a
// checkpoint of its owner, what was not computed goes; or closed: everything of it goes, its own captures too, unless it
// took its owner over and has not computed: then the owner is as before.
// State is advanced in place. After an abort (or an accepted count of 0) every ledger token is computed and the state
// is complete at exactly that frontier; to go on, tokens must be appended (there are no logits to sample from again).

#include <cstdint>
#include <optional>
#include <vector>

#include "cpp/program/takeover.h"

namespace ninfer {

using SequenceHandle = Handle<struct SequenceTag>;

struct Sequence {
    std::uint32_t generation = 0;
    bool open = false;
    std::int64_t reserved = 0;  // tokens
    std::int64_t length = 0;    // of the ledger
    std::int64_t computed = 0;
    std::int64_t prompt_tokens_computed = 0;  // the native counter behind timings.prompt_n
    std::int64_t output_count = 0;            // sampled and forced output; the next token's RNG index

    LedgerId ledger;
    SpaceId kv;
    ImageId image;  // none for models without recurrent layers
    OwnerHandle owner;
    Takeover takeover;

    std::int32_t waits = 0;      // open copies without which it is not complete: of its tail, of its image
    std::int32_t snapshots = 0;  // open copies of its image to Host; writing meanwhile would spoil them
    bool copy_failed = false;    // its image could not be restored: it can only be closed

    std::vector<std::uint32_t> output_counts;  // [vocab_size] once penalties are wanted, else empty
    std::vector<std::uint32_t> seen_counts;

    std::int64_t uncomputed() const { return length - computed; }

    // What of ContextState::not_ready the sequence knows itself. kCopyFailed, kUnsettled, kCopyInFlight.
    std::optional<Refusal> not_ready() const {
        if (copy_failed) return Refusal{RefusalKind::kCopyFailed, 1, 0};
        if (waits > 0) return Refusal{RefusalKind::kUnsettled, 0, waits};
        if (snapshots > 0) return Refusal{RefusalKind::kCopyInFlight, 0, snapshots};
        return std::nullopt;
    }
};

}  // namespace ninfer
