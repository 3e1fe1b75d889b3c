#pragma once

#include <cstdint>

#include "cpp/base/cpu_features.h"

namespace ninfer {

struct ProgramOptions {
    InstructionSet isa = InstructionSet::kScalar;
    int threads = 1;
    std::int64_t kv_pages = 0;
    std::int64_t max_context = 0;       // tokens
    std::int64_t max_concurrency = 1;   // lanes, 1..8
    std::int64_t max_unit_rows = 1;     // longest prefill unit in tokens
    std::int64_t valid_tokens = 0;      // ids the sampler may pick: the tokenizer's, not the padded vocabulary
    std::int64_t checkpoint_slots = 0;  // state images of checkpoints on Device, besides one per lane
    std::int64_t host_bytes = 0;        // of the Host tier
};

}  // namespace ninfer
