#pragma once

// One active sequence: its ledger of tokens, how far they are computed, and the memory reserved for all of it.
//
// Life of a sequence: 1. opened with its whole growth reserved (pages for `reserved` tokens, one state slot, one lane);
// 2. tokens are appended to the ledger; 3. units compute them in order, `computed` grows; 4. the unit that computes the
// last ledger token yields a sampled token in a pending batch; commit appends it, abort does not; 5. closed.
// State is advanced in place. After an abort (or an accepted count of 0) every ledger token is computed and the state
// is complete at exactly that frontier; to go on, tokens must be appended (there are no logits to sample from again).

#include <cstdint>
#include <vector>

#include "cpp/program/token_origin.h"

namespace ninfer {

// Slot in the low 32 bits, generation in the high ones. Generation 0 is never valid.
struct SequenceHandle {
    std::uint64_t value = 0;
    std::uint32_t slot() const { return static_cast<std::uint32_t>(value); }
    std::uint32_t generation() const { return static_cast<std::uint32_t>(value >> 32); }
    bool operator==(const SequenceHandle&) const = default;
};

struct Sequence {
    std::uint32_t generation = 0;
    bool open = false;
    std::int64_t reserved = 0;  // tokens
    std::int64_t computed = 0;
    std::int64_t prompt_tokens_computed = 0;   // the native counter behind timings.prompt_n
    std::int64_t output_count = 0;             // sampled and forced output; the next token's RNG index
    std::vector<std::int32_t> tokens;          // room for `reserved` tokens, so that rounds do not allocate
    std::vector<TokenOrigin> origins;          // [tokens]
    std::vector<std::int32_t> pages;           // page table, room for the pages of max_context
    std::vector<std::uint32_t> output_counts;  // [vocab_size] once penalties are wanted, else empty
    std::vector<std::uint32_t> seen_counts;

    std::int64_t uncomputed() const { return static_cast<std::int64_t>(tokens.size()) - computed; }
};

}  // namespace ninfer
