#pragma once

// What a unit that samples is asked for, and what it yields.

#include <array>
#include <cstdint>

#include "cpp/model/decoder.h"
#include "cpp/ops/sampling.h"
#include "cpp/program/sequence.h"

namespace ninfer {

struct RowRequest {
    SequenceHandle sequence;
    SamplerInput sampler;  // output_index and the count arrays are filled in by the program
};

// The caller's hold on a finished unit whose effect waits for exactly one commit or abort. Move-only; one that is lost
// is ended by abort_pending().
struct PendingBatch {
    PendingBatch() = default;
    PendingBatch(const PendingBatch&) = delete;
    PendingBatch& operator=(const PendingBatch&) = delete;
    PendingBatch(PendingBatch&&) = default;
    PendingBatch& operator=(PendingBatch&&) = default;

    const void* program = nullptr;  // whose batch it is: another program refuses it
    std::uint64_t id = 0;
    std::int64_t rows = 0;
    std::array<SampledToken, Decoder::kMaxSequences> sampled{};
};

}  // namespace ninfer
