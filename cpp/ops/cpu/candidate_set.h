#pragma once

// Tokens that the filters of sampling still consider, and their order (logit descending, id ascending).

#include <cstdint>

#include "cpp/memory/scratch_arena.h"

namespace ninfer {

// Arrays of `capacity` elements in scratch. ids ascend; position p is one candidate in ids, logits and weights.
struct CandidateSet {
    std::int32_t* ids = nullptr;
    float* logits = nullptr;
    float* weights = nullptr;        // e^((logit - best) / temperature)
    std::uint32_t* order = nullptr;  // after sort_candidates: positions, best first
    std::uint32_t* keys = nullptr;   // in the same order
    std::uint32_t* spare_order = nullptr;
    std::uint32_t* spare_keys = nullptr;
    std::int64_t count = 0;
};

CandidateSet take_candidate_set(ScratchArena& scratch, std::int64_t capacity);

// Fills order from logits[0 .. count): a stable radix sort, so that equal logits stay in ascending position. Equal
// means equal as numbers: zeros of both signs and denormals are one (compute threads flush denormals).
void sort_candidates(CandidateSet& set);

}  // namespace ninfer
