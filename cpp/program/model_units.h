#pragma once

// Computes units of sequences: maps their pages before, commits their state after, and holds the one batch that may be
// pending. Mappings and frontiers do not change while a unit runs.

#include <array>
#include <optional>
#include <span>

#include "cpp/backend/cpu_backend.h"
#include "cpp/memory/host_buffer.h"
#include "cpp/program/context_state.h"
#include "cpp/program/pending_batch.h"
#include "cpp/program/program_options.h"

namespace ninfer {

class ModelUnits {
   public:
    // Decoder and context outlive it. Throws OutOfMemoryError.
    ModelUnits(const Decoder& decoder, ContextState& context, const ProgramOptions& options);
    ModelUnits(const ModelUnits&) = delete;
    ModelUnits& operator=(const ModelUnits&) = delete;

    // As in Program.
    Result<std::int64_t, Refusal> prefill(SequenceHandle handle, std::int64_t limit);
    Result<PendingBatch, Refusal> finish_prefill(const RowRequest& request);
    Result<PendingBatch, Refusal> decode(std::span<const RowRequest> rows);
    Result<std::int64_t, Refusal> prefill_logits(SequenceHandle handle, std::int64_t limit, std::span<float> logits);
    Result<Nothing, Refusal> append(SequenceHandle handle, const LedgerTokens& tokens);
    Result<Nothing, Refusal> commit(const PendingBatch& batch, std::span<const std::int32_t> accepted);
    Result<Nothing, Refusal> abort(const PendingBatch& batch);
    bool abort_pending();

    // Whether another unit or another end of a sequence is legal now. kStaleHandle, kPendingBatch.
    std::optional<Refusal> check_idle(SequenceHandle handle) const;
    // Whether this sequence may end or be captured while others' rows wait. kStaleHandle, kPendingBatch.
    std::optional<Refusal> check_not_pending(SequenceHandle handle) const;

    std::span<const float> last_logits(std::int64_t row) const;
    std::int64_t tokens_computed() const noexcept { return tokens_computed_; }
    std::int64_t scratch_peak_bytes() const { return static_cast<std::int64_t>(backend_.scratch().peak_bytes()); }
    InstructionSet instruction_set() const noexcept { return backend_.instruction_set(); }

   private:
    // The members of the pending batch, frozen from its unit to its ending; id 0: none is pending.
    struct PendingRows {
        std::uint64_t id = 0;
        std::int64_t rows = 0;
        std::array<SequenceHandle, Decoder::kMaxSequences> sequences{};
        std::array<std::int32_t, Decoder::kMaxSequences> tokens{};
    };

    std::optional<Refusal> check_unit(SequenceHandle handle) const;
    std::optional<Refusal> check_round(std::span<const RowRequest> rows) const;
    std::optional<Refusal> check_pending(const PendingBatch& batch) const;
    std::optional<Refusal> check_accepted(std::span<const std::int32_t> accepted) const;
    MatrixView logits(std::int64_t rows);
    SequenceRows rows_of(SequenceHandle handle, std::int64_t count, LogitRows logit_rows);
    std::span<const std::int32_t> uncomputed_tokens(const Sequence& sequence, std::int64_t count);
    void run(std::span<const SequenceRows> rows, MatrixView logits);
    void advance(SequenceHandle handle, std::int64_t count);
    PendingBatch sample(std::span<const RowRequest> rows);
    void append_tokens(Sequence& sequence, const LedgerTokens& tokens);

    const Decoder& decoder_;
    ContextState& context_;
    ProgramOptions options_;
    CpuBackend backend_;
    HostBuffer logits_;
    std::vector<std::int32_t> tokens_;  // of a unit whose tokens do not lie together in the ledger
    PendingRows pending_;
    std::uint64_t last_batch_id_ = 0;
    std::int64_t tokens_computed_ = 0;
};

}  // namespace ninfer
