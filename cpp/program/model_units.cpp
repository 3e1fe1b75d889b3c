#include "cpp/program/model_units.h"

#include <algorithm>

#include "cpp/base/fp_environment.h"

namespace ninfer {

namespace {

std::size_t needed_scratch(const Decoder& decoder, const ProgramOptions& options) {
    const auto rows = std::max(options.max_unit_rows, options.max_concurrency);
    return std::max(decoder.scratch_bytes(rows, options.threads),
                    sampling_scratch_bytes(options.max_concurrency, decoder.spec().vocab_size));
}

MatrixView matrix(float* data, std::int64_t rows, std::int64_t columns) { return {data, rows, columns, columns}; }

// What was checked before must not be refused now.
template <typename T>
void expect(const Result<T, Refusal>& result, const char* what) {
    NINFER_ASSERT(result.has_value(), what);
}

// Units take positions from indices and know no type but text.
std::optional<Refusal> check_text(std::span<const TokenSpan> spans, std::int64_t begin, std::int64_t end) {
    if (spans.empty() || begin == end) return std::nullopt;
    const std::int64_t other = first_difference(spans, {&kTextFromStart, 1}, begin, end);
    if (other == end) return std::nullopt;
    return Refusal{RefusalKind::kNotText, other, spans[find_span(spans, other)].first.type};
}

}  // namespace

ModelUnits::ModelUnits(const Decoder& decoder, ContextState& context, const ProgramOptions& options)
    : decoder_(decoder),
      context_(context),
      options_(options),
      backend_(options.isa, options.threads, needed_scratch(decoder, options)),
      logits_(static_cast<std::size_t>(options.max_concurrency * decoder.spec().vocab_size) * sizeof(float)),
      tokens_(static_cast<std::size_t>(options.max_unit_rows)) {}

Result<Nothing, Refusal> ModelUnits::append(SequenceHandle handle, const LedgerTokens& tokens) {
    if (const auto refusal = check_idle(handle)) return *refusal;
    Sequence& sequence = context_.sequences.at(handle);
    if (sequence.copy_failed) return *sequence.not_ready();
    const auto length = sequence.length + std::ssize(tokens.ids);
    if (length > sequence.reserved) return Refusal{RefusalKind::kOverReservation, length, sequence.reserved};
    for (const auto token : tokens.ids)
        if (token < 0 || token >= decoder_.spec().vocab_size)
            return Refusal{RefusalKind::kTokenId, token, decoder_.spec().vocab_size};
    if (const auto refusal = check_text(tokens.spans, sequence.length, length)) return *refusal;
    append_tokens(sequence, tokens);
    return Nothing{};
}

Result<std::int64_t, Refusal> ModelUnits::prefill(SequenceHandle handle, std::int64_t limit) {
    if (const auto refusal = check_unit(handle)) return *refusal;
    const Sequence& sequence = context_.sequences.at(handle);
    if (sequence.uncomputed() < 1) return Refusal{RefusalKind::kNothingToCompute, 1, sequence.uncomputed()};
    const auto count = std::min({limit, sequence.uncomputed() - 1, options_.max_unit_rows});
    if (count <= 0) return std::int64_t{0};
    const SequenceRows rows = rows_of(handle, count, LogitRows::kNone);
    run({&rows, 1}, logits(0));
    advance(handle, count);
    return count;
}

Result<PendingBatch, Refusal> ModelUnits::finish_prefill(const RowRequest& request) {
    if (const auto refusal = check_unit(request.sequence)) return *refusal;
    const auto count = context_.sequences.at(request.sequence).uncomputed();
    if (count < 1) return Refusal{RefusalKind::kNothingToCompute, 1, count};
    if (count > options_.max_unit_rows) return Refusal{RefusalKind::kBatchSize, count, options_.max_unit_rows};
    const SequenceRows rows = rows_of(request.sequence, count, LogitRows::kLast);
    run({&rows, 1}, logits(1));
    advance(request.sequence, count);
    return sample({&request, 1});
}

Result<PendingBatch, Refusal> ModelUnits::decode(std::span<const RowRequest> rows) {
    if (const auto refusal = check_round(rows)) return *refusal;
    std::array<SequenceRows, Decoder::kMaxSequences> unit;
    for (std::size_t i = 0; i < rows.size(); ++i) unit[i] = rows_of(rows[i].sequence, 1, LogitRows::kLast);
    run(std::span(unit).first(rows.size()), logits(std::ssize(rows)));
    for (const auto& row : rows) advance(row.sequence, 1);
    return sample(rows);
}

std::optional<Refusal> ModelUnits::check_round(std::span<const RowRequest> rows) const {
    const auto row_count = std::ssize(rows);
    if (row_count < 1 || row_count > options_.max_concurrency)
        return Refusal{RefusalKind::kBatchSize, row_count, options_.max_concurrency};
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto handle = rows[i].sequence;
        if (const auto refusal = check_unit(handle)) return refusal;
        for (std::size_t j = 0; j < i; ++j)
            if (rows[j].sequence == handle) return Refusal{RefusalKind::kDuplicateRow, handle.slot(), handle.slot()};
        const auto uncomputed = context_.sequences.at(handle).uncomputed();
        if (uncomputed != 1) return Refusal{RefusalKind::kNotOneUncomputed, 1, uncomputed};
    }
    return std::nullopt;
}

Result<std::int64_t, Refusal> ModelUnits::prefill_logits(SequenceHandle handle, std::int64_t limit,
                                                         std::span<float> logits) {
    if (const auto refusal = check_unit(handle)) return *refusal;
    const Sequence& sequence = context_.sequences.at(handle);
    const auto count = std::min({limit, sequence.uncomputed(), options_.max_unit_rows});
    if (count < 1) return Refusal{RefusalKind::kNothingToCompute, 1, sequence.uncomputed()};
    const auto vocab_size = decoder_.spec().vocab_size;
    NINFER_ASSERT_LE(count * vocab_size, static_cast<std::int64_t>(logits.size()));
    const SequenceRows rows = rows_of(handle, count, LogitRows::kAll);
    run({&rows, 1}, matrix(logits.data(), count, vocab_size));
    advance(handle, count);
    return count;
}

Result<Nothing, Refusal> ModelUnits::commit(const PendingBatch& batch, std::span<const std::int32_t> accepted) {
    if (const auto refusal = check_pending(batch)) return *refusal;
    if (const auto refusal = check_accepted(accepted)) return *refusal;
    for (std::size_t i = 0; i < accepted.size(); ++i)
        if (accepted[i] == 1)
            append_tokens(context_.sequences.at(pending_.sequences[i]),
                          {{&pending_.tokens[i], 1}, {}, TokenOrigin::kOutput});
    pending_ = {};
    return Nothing{};
}

std::optional<Refusal> ModelUnits::check_accepted(std::span<const std::int32_t> accepted) const {
    if (std::ssize(accepted) != pending_.rows)
        return Refusal{RefusalKind::kAcceptedCount, std::ssize(accepted), pending_.rows};
    for (std::size_t i = 0; i < accepted.size(); ++i) {
        // A row without any allowed token has produced nothing that could be accepted.
        const std::int32_t produced = pending_.tokens[i] >= 0 ? 1 : 0;
        if (accepted[i] < 0 || accepted[i] > produced)
            return Refusal{RefusalKind::kAcceptedCount, accepted[i], produced};
        const Sequence& sequence = context_.sequences.at(pending_.sequences[i]);
        const auto length = sequence.length + accepted[i];
        if (length > sequence.reserved) return Refusal{RefusalKind::kOverReservation, length, sequence.reserved};
    }
    return std::nullopt;
}

Result<Nothing, Refusal> ModelUnits::abort(const PendingBatch& batch) {
    if (const auto refusal = check_pending(batch)) return *refusal;
    pending_ = {};
    return Nothing{};
}

bool ModelUnits::abort_pending() {
    const bool pending = pending_.id != 0;
    pending_ = {};
    return pending;
}

std::optional<Refusal> ModelUnits::check_pending(const PendingBatch& batch) const {
    if (pending_.id != 0 && batch.program == this && batch.id == pending_.id) return std::nullopt;
    return Refusal{RefusalKind::kNoPendingBatch, static_cast<std::int64_t>(batch.id),
                   static_cast<std::int64_t>(pending_.id)};
}

std::optional<Refusal> ModelUnits::check_idle(SequenceHandle handle) const {
    if (const auto found = std::as_const(context_).sequences.find(handle); !found) return found.error();
    if (pending_.id != 0) return Refusal{RefusalKind::kPendingBatch, 0, static_cast<std::int64_t>(pending_.id)};
    return std::nullopt;
}

std::optional<Refusal> ModelUnits::check_not_pending(SequenceHandle handle) const {
    if (const auto found = std::as_const(context_).sequences.find(handle); !found) return found.error();
    const auto members = std::span(pending_.sequences).first(static_cast<std::size_t>(pending_.rows));
    if (pending_.id != 0 && std::find(members.begin(), members.end(), handle) != members.end())
        return Refusal{RefusalKind::kPendingBatch, 0, static_cast<std::int64_t>(pending_.id)};
    return std::nullopt;
}

// Whether a unit may run on this sequence now.
std::optional<Refusal> ModelUnits::check_unit(SequenceHandle handle) const {
    if (const auto refusal = check_idle(handle)) return refusal;
    return context_.not_ready(context_.sequences.at(handle));
}

MatrixView ModelUnits::logits(std::int64_t rows) {
    auto* data = rows > 0 ? reinterpret_cast<float*>(logits_.data()) : nullptr;
    return matrix(data, rows, decoder_.spec().vocab_size);
}

// Maps what the rows will write: always possible, the whole growth is reserved.
SequenceRows ModelUnits::rows_of(SequenceHandle handle, std::int64_t count, LogitRows logit_rows) {
    const Sequence& sequence = context_.sequences.at(handle);
    ContextStores& stores = context_.stores;
    expect(stores.kv().map(sequence.kv, sequence.computed + count), "a unit inside its reservation finds no pages");
    SequenceRows rows;
    rows.tokens = uncomputed_tokens(sequence, count);
    rows.first_position = sequence.computed;
    rows.page_table = stores.kv().page_table(sequence.kv);
    if (stores.has_images()) {
        rows.state_read = stores.images().read(sequence.image);
        rows.state_write = stores.images().write(sequence.image);
    }
    rows.logit_rows = logit_rows;
    return rows;
}

// Only one sequence of a unit has more than one row, and one token always lies together.
std::span<const std::int32_t> ModelUnits::uncomputed_tokens(const Sequence& sequence, std::int64_t count) {
    const LedgerStore& ledgers = context_.stores.ledgers();
    const auto together = ledgers.view(sequence.ledger, sequence.computed).value();
    if (std::ssize(together) >= count) return together.first(static_cast<std::size_t>(count));
    const auto copied = std::span(tokens_).first(static_cast<std::size_t>(count));
    expect(ledgers.read(sequence.ledger, sequence.computed, copied), "a ledger is shorter than its sequence");
    return copied;
}

void ModelUnits::run(std::span<const SequenceRows> rows, MatrixView logits) {
    const FlushDenormals compute_state;
    decoder_.run(backend_.context(), backend_.ops(), {rows, context_.stores.kv().pool(), logits});
}

void ModelUnits::advance(SequenceHandle handle, std::int64_t count) {
    Sequence& sequence = context_.sequences.at(handle);
    NINFER_ASSERT_LE(count, sequence.uncomputed());
    ContextStores& stores = context_.stores;
    const auto end = sequence.computed + count;
    const auto prompt = stores.ledgers().count(sequence.ledger, TokenOrigin::kPrompt, sequence.computed, end);
    sequence.prompt_tokens_computed += prompt.value();
    expect(stores.kv().commit(sequence.kv, end), "a unit's pages cannot be committed");
    if (stores.has_images()) expect(stores.images().commit(sequence.image), "a unit's state cannot be committed");
    sequence.computed = end;
    tokens_computed_ += count;
}

PendingBatch ModelUnits::sample(std::span<const RowRequest> rows) {
    PendingBatch batch;
    batch.program = this;
    batch.id = ++last_batch_id_;
    batch.rows = std::ssize(rows);
    std::array<SamplerInput, Decoder::kMaxSequences> inputs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Sequence& sequence = context_.sequences.at(rows[i].sequence);
        inputs[i] = rows[i].sampler;
        inputs[i].output_index = static_cast<std::uint64_t>(sequence.output_count);
        inputs[i].output_counts = sequence.output_counts.empty() ? nullptr : sequence.output_counts.data();
        inputs[i].seen_counts = sequence.seen_counts.empty() ? nullptr : sequence.seen_counts.data();
    }
    const FlushDenormals compute_state;
    backend_.ops().sample(backend_.context(),
                          {logits(batch.rows), options_.valid_tokens, inputs.data(), batch.sampled.data()});
    pending_.id = batch.id;
    pending_.rows = batch.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        pending_.sequences[i] = rows[i].sequence;
        pending_.tokens[i] = batch.sampled[i].id;
    }
    return batch;
}

void ModelUnits::append_tokens(Sequence& sequence, const LedgerTokens& tokens) {
    const bool is_output = tokens.origin == TokenOrigin::kOutput;
    expect(context_.stores.ledgers().append(sequence.ledger, tokens), "a ledger is shorter than promised");
    sequence.length += std::ssize(tokens.ids);
    if (is_output) sequence.output_count += std::ssize(tokens.ids);
    if (sequence.seen_counts.empty()) return;
    for (const auto token : tokens.ids) {
        ++sequence.seen_counts[static_cast<std::size_t>(token)];
        if (is_output) ++sequence.output_counts[static_cast<std::size_t>(token)];
    }
}

std::span<const float> ModelUnits::last_logits(std::int64_t row) const {
    NINFER_ASSERT_LE(0, row);
    NINFER_ASSERT_LT(row, options_.max_concurrency);
    const auto vocab_size = static_cast<std::size_t>(decoder_.spec().vocab_size);
    return {reinterpret_cast<const float*>(logits_.data()) + static_cast<std::size_t>(row) * vocab_size, vocab_size};
}

}  // namespace ninfer
