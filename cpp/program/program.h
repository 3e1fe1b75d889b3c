#pragma once

// The native execution interface: sequences, prefill and decode units, pending batches.
//
// Every call either succeeds or returns a Refusal and changes nothing. At most one batch is pending at a time; while it
// is, only commit and abort are legal on the program's units. Used by one thread at a time (the engine worker).

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cpp/backend/cpu_backend.h"
#include "cpp/base/result.h"
#include "cpp/model/decoder.h"
#include "cpp/program/page_pool.h"
#include "cpp/program/sequence.h"
#include "cpp/state/refusal.h"
#include "cpp/weights/weight_store.h"

namespace ninfer {

struct ProgramOptions {
    InstructionSet isa = InstructionSet::kScalar;
    int threads = 1;
    std::int64_t kv_pages = 0;
    std::int64_t max_context = 0;      // tokens
    std::int64_t max_concurrency = 1;  // lanes, 1..8
    std::int64_t max_unit_rows = 1;    // longest prefill unit in tokens
    std::int64_t valid_tokens = 0;     // ids the sampler may pick: the tokenizer's, not the padded vocabulary
};

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

struct ProgramStatistics {
    std::int64_t pages_total = 0;
    std::int64_t pages_free = 0;
    std::int64_t lanes_total = 0;
    std::int64_t lanes_open = 0;
    std::int64_t state_image_bytes = 0;
    std::int64_t page_bytes = 0;
    std::int64_t weight_bytes = 0;
    std::int64_t scratch_peak_bytes = 0;
    std::int64_t tokens_computed = 0;
};

class Program {
   public:
    // The store must hold every weight the spec points to; throws OutOfMemoryError.
    Program(DecoderSpec spec, std::shared_ptr<const WeightStore> weights, KvStorage kv_storage,
            const ProgramOptions& options);

    // Reserves a lane, a zeroed state image and pages for `tokens` tokens (prompt and all output).
    Result<SequenceHandle, Refusal> open_sequence(std::int64_t tokens, bool count_tokens);
    Result<Nothing, Refusal> close_sequence(SequenceHandle handle);
    // Appends prompt tokens, or output that is forced instead of sampled, to the ledger.
    Result<Nothing, Refusal> append(SequenceHandle handle, std::span<const std::int32_t> tokens, TokenOrigin origin);

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

    Result<const Sequence*, Refusal> find(SequenceHandle handle) const;
    // Row i of the last sampled unit's logits, [vocab_size]; valid until the next unit.
    std::span<const float> last_logits(std::int64_t row) const;
    ProgramStatistics statistics() const;
    std::int64_t valid_tokens() const noexcept { return options_.valid_tokens; }
    const Decoder& decoder() const noexcept { return decoder_; }
    InstructionSet instruction_set() const noexcept { return backend_.instruction_set(); }

    // For tests that damage state on purpose and must see other logits.
    std::span<std::byte> state_image_for_test(SequenceHandle handle);
    std::span<std::int32_t> page_table_for_test(SequenceHandle handle);

   private:
    Result<Sequence*, Refusal> find_mutable(SequenceHandle handle);
    std::optional<Refusal> check_unit(SequenceHandle handle) const;
    std::byte* state_image(std::uint32_t slot);
    SequenceRows rows_of(SequenceHandle handle, std::int64_t count, LogitRows logit_rows);
    void run(std::span<const SequenceRows> rows, MatrixView logits);
    void advance(Sequence& sequence, std::int64_t count);
    PendingBatch sample(std::span<const RowRequest> rows);
    std::optional<Refusal> check_pending(const PendingBatch& batch) const;
    void append_token(Sequence& sequence, std::int32_t token, TokenOrigin origin);

    std::shared_ptr<const WeightStore> weights_;
    Decoder decoder_;
    ProgramOptions options_;
    CpuBackend backend_;
    PagePool pages_;
    HostBuffer state_images_;
    std::vector<Sequence> lanes_;
    HostBuffer logits_;
    // The members of the pending batch, frozen from its unit to its ending; id 0: none is pending.
    struct PendingRows {
        std::uint64_t id = 0;
        std::int64_t rows = 0;
        std::array<SequenceHandle, Decoder::kMaxSequences> sequences{};
        std::array<std::int32_t, Decoder::kMaxSequences> tokens{};
    };
    PendingRows pending_;
    std::uint64_t last_batch_id_ = 0;
    std::int64_t tokens_computed_ = 0;
};

}  // namespace ninfer
