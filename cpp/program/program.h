#pragma once

// The native execution interface: sequences, prefill and decode units, pending batches, and the checkpoints that
// sequences leave and start from.
//
// Every call either succeeds or returns a Refusal and changes nothing. At most one batch is pending at a time; while it
// is, only commit and abort are legal on the program's units. Used by one thread at a time (the engine worker).

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cpp/program/capture.h"
#include "cpp/program/context_plan.h"
#include "cpp/program/copy_polling.h"
#include "cpp/program/model_units.h"
#include "cpp/program/prepared_prompt.h"
#include "cpp/program/program_statistics.h"
#include "cpp/program/sequence_opening.h"
#include "cpp/weights/weight_store.h"

namespace ninfer {

class Program {
   public:
    // The store must hold every weight the spec points to; throws OutOfMemoryError.
    Program(DecoderSpec spec, std::shared_ptr<const WeightStore> weights, KvStorage kv_storage,
            const ProgramOptions& options);
    // With an engine of the caller's: tests delay and fail copies.
    Program(DecoderSpec spec, std::shared_ptr<const WeightStore> weights, KvStorage kv_storage,
            const ProgramOptions& options, std::unique_ptr<CopyEngine> engine);

    // --- sequences (sequence_opening.h) -------------------------------------------------------------------------------
    Result<SequenceHandle, Refusal> open_sequence(const SequenceRequest& request);
    Result<SequenceHandle, Refusal> open_from(const SequenceSource& source, const SequenceRequest& request);
    // kPendingBatch if the sequence is a member of the pending batch.
    Result<Nothing, Refusal> close_sequence(SequenceHandle handle);
    // Appends prompt tokens, or output that is forced instead of sampled, to the ledger. kNotText: models compute text
    // whose positions are the indices of its tokens, and nothing else yet.
    Result<Nothing, Refusal> append(SequenceHandle handle, const LedgerTokens& tokens);
    Result<Nothing, Refusal> append(SequenceHandle handle, std::span<const std::int32_t> tokens, TokenOrigin origin) {
        return append(handle, {tokens, {}, origin});
    }
    // Appends what the prompt has beyond the sequence's tokens; those were compared when a checkpoint became its start.
    // kStaleHandle, kMismatch (another identity), kBeyondFrontier (the sequence is longer), and as append.
    Result<Nothing, Refusal> append_prompt(SequenceHandle handle, const PreparedPrompt& prompt);
    // Notes in the ledger that execution was split there. kStaleHandle, kBackwards, kBeyondFrontier.
    Result<Nothing, Refusal> record_rewrite_frontier(SequenceHandle handle, std::int64_t frontier);

    // --- units --------------------------------------------------------------------------------------------------------
    // kUnsettled until the copies that the sequence waits for are there, kCopyInFlight while its image is being copied,
    // kCopyFailed for good if a copy failed: then it can only be closed.
    // Computes the next `limit` uncomputed tokens, always leaving the last one; returns how many (0 when only one is
    // left). Commits directly: an intermediate unit yields nothing to decide.
    Result<std::int64_t, Refusal> prefill(SequenceHandle handle, std::int64_t limit);
    // Computes the remaining uncomputed tokens (at most max_unit_rows) and samples: the last unit of a prompt.
    Result<PendingBatch, Refusal> finish_prefill(const RowRequest& request);
    // One round: every row has exactly one uncomputed token.
    Result<PendingBatch, Refusal> decode(std::span<const RowRequest> rows);
    // Computes the next `limit` tokens and writes the logits of each, [n, vocab_size] row-major; returns n. No
    // sampling.
    Result<std::int64_t, Refusal> prefill_logits(SequenceHandle handle, std::int64_t limit, std::span<float> logits);

    // accepted[i] in {0, 1}: whether row i keeps its sampled token (0 for a cancelled row).
    Result<Nothing, Refusal> commit(const PendingBatch& batch, std::span<const std::int32_t> accepted);
    Result<Nothing, Refusal> abort(const PendingBatch& batch);
    // Aborts whatever batch is pending, for a caller that was interrupted and has lost it; whether there was one.
    bool abort_pending();

    // --- checkpoints (capture.h, checkpoint_placement.h, checkpoint_removal.h, copy_polling.h) ------------------------
    // capture and finish: kPendingBatch if the sequence is a member of the pending batch.
    Result<CheckpointHandle, Refusal> capture(SequenceHandle handle, const CaptureRequest& request);
    Result<CaptureShape, Refusal> capture_shape(SequenceHandle handle) const;
    Result<OwnerHandle, Refusal> finish(SequenceHandle handle, const FinishRequest& request);
    Result<OwnerSummary, Refusal> owner(OwnerHandle handle) const;
    Result<CheckpointSummary, Refusal> checkpoint(CheckpointHandle handle) const;
    Result<std::int64_t, Refusal> start_copy(CheckpointHandle handle, Tier tier);
    CopyProgress poll_copies(std::size_t max_bytes);
    Result<std::int64_t, Refusal> cancel_copies(CheckpointHandle handle);
    Result<std::int64_t, Refusal> drop(CheckpointHandle handle, Tier tier);
    Result<Nothing, Refusal> delete_checkpoint(CheckpointHandle handle);
    Result<Nothing, Refusal> release_owner(OwnerHandle handle);
    // The digest of its first `frontier` tokens. kStaleHandle, kBeyondFrontier.
    Result<Digest128, Refusal> digest_at(CheckpointHandle handle, std::int64_t frontier) const;
    // How far prompt and checkpoints have the same identity. kStaleHandle.
    Result<Nothing, Refusal> verify(const PromptView& prompt, std::span<const CheckpointHandle> checkpoints,
                                    std::span<Verification> verifications);

    // --- transitions (planning_session.h, context_transaction.h) ------------------------------------------------------
    // What planning sessions and proofs read. Changed by the calls of this class only.
    ContextState& context() noexcept { return context_; }
    // As context_transaction.h; kPendingBatch if what is to be captured or finished is a member of the pending batch.
    Result<std::optional<ResourceResult>, Refusal> start_transaction(ContextPlan plan,
                                                                     std::span<const OwnerHandle> protected_owners);
    Result<std::optional<ResourceResult>, Refusal> advance_transaction();
    bool transaction_waits() const;
    // Of the open one, if there is one.
    std::optional<TransactionPhase> transaction_phase() const;
    bool cancel_transaction();

    // --- facts --------------------------------------------------------------------------------------------------------
    Result<const Sequence*, Refusal> find(SequenceHandle handle) const;
    // The whole ledger of a sequence. kStaleHandle.
    Result<std::vector<std::int32_t>, Refusal> tokens(SequenceHandle handle) const;
    // Row i of the last sampled unit's logits, [vocab_size]; valid until the next unit.
    std::span<const float> last_logits(std::int64_t row) const { return units_.last_logits(row); }
    ProgramStatistics statistics() const;
    std::uint64_t resource_revision() const noexcept { return context_.resource_revision; }
    std::int64_t lanes() const noexcept { return context_.sequences.lanes(); }
    std::int64_t valid_tokens() const noexcept { return valid_tokens_; }
    const Decoder& decoder() const noexcept { return decoder_; }
    InstructionSet instruction_set() const noexcept { return units_.instruction_set(); }

    void check_invariants() const { context_.check_invariants(); }
    std::uint64_t fingerprint() const { return context_.fingerprint(); }

    // For tests that damage state on purpose and must see other logits: what the sequence's next unit will read, and what
    // a checkpoint has on Device (empty or -1: nothing). The handles must be valid.
    std::span<std::byte> state_image_for_test(SequenceHandle handle);
    std::span<std::int32_t> page_table_for_test(SequenceHandle handle);
    std::span<std::byte> state_image_for_test(CheckpointHandle handle);
    std::vector<std::int32_t> device_pages_for_test(CheckpointHandle handle) const;
    std::span<std::byte> device_page_for_test(std::int32_t page);

   private:
    std::optional<Refusal> check_not_pending(const Publication& publication) const;

    std::shared_ptr<const WeightStore> weights_;
    Decoder decoder_;
    std::int64_t valid_tokens_;
    ContextState context_;
    ModelUnits units_;
    std::vector<LedgerCandidate> candidates_;  // scratch of verify
};

}  // namespace ninfer
