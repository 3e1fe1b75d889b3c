#include "cpp/program/program.h"

#include <algorithm>
#include <cstring>

#include "cpp/base/fp_environment.h"

namespace ninfer {

namespace {

std::int64_t pages_of(std::int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }

std::size_t needed_scratch(const Decoder& decoder, const ProgramOptions& options) {
    const auto rows = std::max(options.max_unit_rows, options.max_concurrency);
    return std::max(decoder.scratch_bytes(rows, options.threads),
                    sampling_scratch_bytes(options.max_concurrency, decoder.spec().vocab_size));
}

const ProgramOptions& checked(const ProgramOptions& options, const DecoderSpec& spec) {
    NINFER_ASSERT_LE(1, options.threads);
    NINFER_ASSERT_LE(1, options.max_concurrency);
    NINFER_ASSERT_LE(options.max_concurrency, Decoder::kMaxSequences);
    NINFER_ASSERT_LE(1, options.max_unit_rows);
    NINFER_ASSERT_LE(1, options.valid_tokens);
    NINFER_ASSERT_LE(options.valid_tokens, spec.vocab_size);
    NINFER_ASSERT_LE(0, options.max_context);
    return options;
}

MatrixView matrix(float* data, std::int64_t rows, std::int64_t columns) { return {data, rows, columns, columns}; }

}  // namespace

Program::Program(DecoderSpec spec, std::shared_ptr<const WeightStore> weights, KvStorage kv_storage,
                 const ProgramOptions& options)
    : weights_(std::move(weights)),
      decoder_(std::move(spec), kv_storage),
      options_(checked(options, decoder_.spec())),
      backend_(options.isa, options.threads, needed_scratch(decoder_, options)),
      pages_(options.kv_pages, decoder_.page_layout().group_bytes()),
      state_images_(static_cast<std::size_t>(options.max_concurrency) * decoder_.state_layout().image_bytes()),
      lanes_(static_cast<std::size_t>(options.max_concurrency)),
      logits_(static_cast<std::size_t>(options.max_concurrency * decoder_.spec().vocab_size) * sizeof(float)) {
    for (auto& lane : lanes_) lane.pages.reserve(static_cast<std::size_t>(pages_of(options.max_context)));
}

Result<SequenceHandle, Refusal> Program::open_sequence(std::int64_t tokens, bool count_tokens) {
    NINFER_ASSERT_LE(0, tokens);
    if (tokens > options_.max_context) return Refusal{RefusalKind::kOverContext, tokens, options_.max_context};
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(), [](const Sequence& s) { return !s.open; });
    const auto lanes_total = static_cast<std::int64_t>(lanes_.size());
    if (lane == lanes_.end()) return Refusal{RefusalKind::kNoLane, lanes_total + 1, lanes_total};
    const auto pages = pages_of(tokens);
    if (pages > pages_.pages_free()) return Refusal{RefusalKind::kNoPages, pages, pages_.pages_free()};

    const auto slot = static_cast<std::uint32_t>(lane - lanes_.begin());
    // What can fail for want of memory comes before anything that has to be undone.
    lane->tokens.reserve(static_cast<std::size_t>(tokens));
    lane->origins.reserve(static_cast<std::size_t>(tokens));
    const auto counted = count_tokens ? static_cast<std::size_t>(decoder_.spec().vocab_size) : 0;
    lane->output_counts.assign(counted, 0);
    lane->seen_counts.assign(counted, 0);
    lane->open = true;
    ++lane->generation;
    lane->reserved = tokens;
    lane->computed = 0;
    lane->prompt_tokens_computed = 0;
    lane->output_count = 0;
    lane->tokens.clear();
    lane->origins.clear();
    pages_.take(pages, lane->pages);
    if (state_images_.size() > 0) std::memset(state_image(slot), 0, decoder_.state_layout().image_bytes());
    return SequenceHandle{(static_cast<std::uint64_t>(lane->generation) << 32) | slot};
}

Result<Nothing, Refusal> Program::close_sequence(SequenceHandle handle) {
    auto found = find_mutable(handle);
    if (!found) return found.error();
    const auto members = std::span(pending_.sequences).first(static_cast<std::size_t>(pending_.rows));
    if (pending_.id != 0 && std::find(members.begin(), members.end(), handle) != members.end())
        return Refusal{RefusalKind::kPendingBatch, 0, static_cast<std::int64_t>(pending_.id)};
    Sequence& sequence = *found.value();
    pages_.give_back(sequence.pages);
    sequence.open = false;
    return Nothing{};
}

Result<Nothing, Refusal> Program::append(SequenceHandle handle, std::span<const std::int32_t> tokens,
                                         TokenOrigin origin) {
    auto found = find_mutable(handle);
    if (!found) return found.error();
    if (const auto refusal = check_unit(handle)) return *refusal;
    Sequence& sequence = *found.value();
    const auto length = static_cast<std::int64_t>(sequence.tokens.size() + tokens.size());
    if (length > sequence.reserved) return Refusal{RefusalKind::kOverReservation, length, sequence.reserved};
    for (const auto token : tokens)
        if (token < 0 || token >= decoder_.spec().vocab_size)
            return Refusal{RefusalKind::kTokenId, token, decoder_.spec().vocab_size};
    for (const auto token : tokens) append_token(sequence, token, origin);
    return Nothing{};
}

Result<std::int64_t, Refusal> Program::prefill(SequenceHandle handle, std::int64_t limit) {
    if (const auto refusal = check_unit(handle)) return *refusal;
    Sequence& sequence = *find_mutable(handle).value();
    if (sequence.uncomputed() < 1) return Refusal{RefusalKind::kNothingToCompute, 1, sequence.uncomputed()};
    const auto count = std::min({limit, sequence.uncomputed() - 1, options_.max_unit_rows});
    if (count <= 0) return std::int64_t{0};
    const SequenceRows rows = rows_of(handle, count, LogitRows::kNone);
    run({&rows, 1}, matrix(nullptr, 0, decoder_.spec().vocab_size));
    advance(sequence, count);
    return count;
}

Result<PendingBatch, Refusal> Program::finish_prefill(const RowRequest& request) {
    if (const auto refusal = check_unit(request.sequence)) return *refusal;
    Sequence& sequence = *find_mutable(request.sequence).value();
    const auto count = sequence.uncomputed();
    if (count < 1) return Refusal{RefusalKind::kNothingToCompute, 1, count};
    if (count > options_.max_unit_rows) return Refusal{RefusalKind::kBatchSize, count, options_.max_unit_rows};
    const SequenceRows rows = rows_of(request.sequence, count, LogitRows::kLast);
    run({&rows, 1}, matrix(reinterpret_cast<float*>(logits_.data()), 1, decoder_.spec().vocab_size));
    advance(sequence, count);
    return sample({&request, 1});
}

Result<PendingBatch, Refusal> Program::decode(std::span<const RowRequest> rows) {
    const auto row_count = static_cast<std::int64_t>(rows.size());
    if (row_count < 1 || row_count > options_.max_concurrency)
        return Refusal{RefusalKind::kBatchSize, row_count, options_.max_concurrency};
    std::array<SequenceRows, Decoder::kMaxSequences> unit;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const auto handle = rows[i].sequence;
        if (const auto refusal = check_unit(handle)) return *refusal;
        for (std::size_t j = 0; j < i; ++j)
            if (rows[j].sequence == handle) return Refusal{RefusalKind::kDuplicateRow, handle.slot(), handle.slot()};
        const auto uncomputed = find(handle).value()->uncomputed();
        if (uncomputed != 1) return Refusal{RefusalKind::kNotOneUncomputed, 1, uncomputed};
        unit[i] = rows_of(handle, 1, LogitRows::kLast);
    }
    run(std::span(unit).first(rows.size()),
        matrix(reinterpret_cast<float*>(logits_.data()), row_count, decoder_.spec().vocab_size));
    for (const auto& row : rows) advance(*find_mutable(row.sequence).value(), 1);
    return sample(rows);
}

Result<std::int64_t, Refusal> Program::prefill_logits(SequenceHandle handle, std::int64_t limit,
                                                      std::span<float> logits) {
    if (const auto refusal = check_unit(handle)) return *refusal;
    Sequence& sequence = *find_mutable(handle).value();
    const auto count = std::min({limit, sequence.uncomputed(), options_.max_unit_rows});
    if (count < 1) return Refusal{RefusalKind::kNothingToCompute, 1, sequence.uncomputed()};
    const auto vocab_size = decoder_.spec().vocab_size;
    NINFER_ASSERT_LE(count * vocab_size, static_cast<std::int64_t>(logits.size()));
    const SequenceRows rows = rows_of(handle, count, LogitRows::kAll);
    run({&rows, 1}, matrix(logits.data(), count, vocab_size));
    advance(sequence, count);
    return count;
}

Result<Nothing, Refusal> Program::commit(const PendingBatch& batch, std::span<const std::int32_t> accepted) {
    if (const auto refusal = check_pending(batch)) return *refusal;
    if (static_cast<std::int64_t>(accepted.size()) != pending_.rows)
        return Refusal{RefusalKind::kAcceptedCount, static_cast<std::int64_t>(accepted.size()), pending_.rows};
    for (std::size_t i = 0; i < accepted.size(); ++i) {
        // A row without any allowed token has produced nothing that could be accepted.
        const std::int32_t produced = pending_.tokens[i] >= 0 ? 1 : 0;
        if (accepted[i] < 0 || accepted[i] > produced)
            return Refusal{RefusalKind::kAcceptedCount, accepted[i], produced};
        const Sequence& sequence = *find(pending_.sequences[i]).value();
        const auto length = static_cast<std::int64_t>(sequence.tokens.size()) + accepted[i];
        if (length > sequence.reserved) return Refusal{RefusalKind::kOverReservation, length, sequence.reserved};
    }
    for (std::size_t i = 0; i < accepted.size(); ++i)
        if (accepted[i] == 1)
            append_token(*find_mutable(pending_.sequences[i]).value(), pending_.tokens[i], TokenOrigin::kOutput);
    pending_ = {};
    return Nothing{};
}

Result<Nothing, Refusal> Program::abort(const PendingBatch& batch) {
    if (const auto refusal = check_pending(batch)) return *refusal;
    pending_ = {};
    return Nothing{};
}

bool Program::abort_pending() {
    const bool pending = pending_.id != 0;
    pending_ = {};
    return pending;
}

std::optional<Refusal> Program::check_pending(const PendingBatch& batch) const {
    if (pending_.id != 0 && batch.program == this && batch.id == pending_.id) return std::nullopt;
    return Refusal{RefusalKind::kNoPendingBatch, static_cast<std::int64_t>(batch.id),
                   static_cast<std::int64_t>(pending_.id)};
}

Result<const Sequence*, Refusal> Program::find(SequenceHandle handle) const {
    const auto stale = [&](std::int64_t generation) {
        return Refusal{RefusalKind::kStaleHandle, static_cast<std::int64_t>(handle.generation()), generation};
    };
    if (handle.slot() >= lanes_.size()) return stale(0);
    const Sequence& sequence = lanes_[handle.slot()];
    if (!sequence.open || sequence.generation != handle.generation()) return stale(sequence.generation);
    return &sequence;
}

Result<Sequence*, Refusal> Program::find_mutable(SequenceHandle handle) {
    const auto found = find(handle);
    if (!found) return found.error();
    return const_cast<Sequence*>(found.value());
}

// Whether a unit may run on this sequence now.
std::optional<Refusal> Program::check_unit(SequenceHandle handle) const {
    const auto found = find(handle);
    if (!found) return found.error();
    if (pending_.id != 0) return Refusal{RefusalKind::kPendingBatch, 0, static_cast<std::int64_t>(pending_.id)};
    return std::nullopt;
}

std::byte* Program::state_image(std::uint32_t slot) {
    return state_images_.data() + static_cast<std::size_t>(slot) * decoder_.state_layout().image_bytes();
}

SequenceRows Program::rows_of(SequenceHandle handle, std::int64_t count, LogitRows logit_rows) {
    const Sequence& sequence = *find(handle).value();
    const auto begin = static_cast<std::size_t>(sequence.computed);
    std::byte* image = state_images_.size() > 0 ? state_image(handle.slot()) : nullptr;
    return {std::span(sequence.tokens).subspan(begin, static_cast<std::size_t>(count)),
            sequence.computed,
            sequence.pages,
            image,
            image,
            logit_rows};
}

void Program::run(std::span<const SequenceRows> rows, MatrixView logits) {
    const FlushDenormals compute_state;
    decoder_.run(backend_.context(), backend_.ops(), {rows, pages_.view(), logits});
}

void Program::advance(Sequence& sequence, std::int64_t count) {
    NINFER_ASSERT_LE(sequence.computed + count, static_cast<std::int64_t>(sequence.tokens.size()));
    const auto computed = sequence.origins.begin() + sequence.computed;
    sequence.prompt_tokens_computed += std::count(computed, computed + count, TokenOrigin::kPrompt);
    sequence.computed += count;
    tokens_computed_ += count;
}

PendingBatch Program::sample(std::span<const RowRequest> rows) {
    PendingBatch batch;
    batch.program = this;
    batch.id = ++last_batch_id_;
    batch.rows = static_cast<std::int64_t>(rows.size());
    std::array<SamplerInput, Decoder::kMaxSequences> inputs;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const Sequence& sequence = *find(rows[i].sequence).value();
        inputs[i] = rows[i].sampler;
        inputs[i].output_index = static_cast<std::uint64_t>(sequence.output_count);
        inputs[i].output_counts = sequence.output_counts.empty() ? nullptr : sequence.output_counts.data();
        inputs[i].seen_counts = sequence.seen_counts.empty() ? nullptr : sequence.seen_counts.data();
    }
    const auto logits = matrix(reinterpret_cast<float*>(logits_.data()), batch.rows, decoder_.spec().vocab_size);
    const FlushDenormals compute_state;
    backend_.ops().sample(backend_.context(), {logits, options_.valid_tokens, inputs.data(), batch.sampled.data()});
    pending_.id = batch.id;
    pending_.rows = batch.rows;
    for (std::size_t i = 0; i < rows.size(); ++i) {
        pending_.sequences[i] = rows[i].sequence;
        pending_.tokens[i] = batch.sampled[i].id;
    }
    return batch;
}

void Program::append_token(Sequence& sequence, std::int32_t token, TokenOrigin origin) {
    const bool is_output = origin == TokenOrigin::kOutput;
    sequence.tokens.push_back(token);
    sequence.origins.push_back(origin);
    if (!sequence.seen_counts.empty()) {
        ++sequence.seen_counts[static_cast<std::size_t>(token)];
        if (is_output) ++sequence.output_counts[static_cast<std::size_t>(token)];
    }
    if (is_output) ++sequence.output_count;
}

std::span<const float> Program::last_logits(std::int64_t row) const {
    NINFER_ASSERT_LE(0, row);
    NINFER_ASSERT_LT(row, options_.max_concurrency);
    const auto vocab_size = static_cast<std::size_t>(decoder_.spec().vocab_size);
    return {reinterpret_cast<const float*>(logits_.data()) + static_cast<std::size_t>(row) * vocab_size, vocab_size};
}

ProgramStatistics Program::statistics() const {
    const auto open = std::count_if(lanes_.begin(), lanes_.end(), [](const Sequence& s) { return s.open; });
    return {pages_.pages_total(),
            pages_.pages_free(),
            static_cast<std::int64_t>(lanes_.size()),
            open,
            static_cast<std::int64_t>(decoder_.state_layout().image_bytes()),
            static_cast<std::int64_t>(decoder_.page_layout().group_bytes()),
            static_cast<std::int64_t>(weights_->total_bytes()),
            static_cast<std::int64_t>(backend_.scratch().peak_bytes()),
            tokens_computed_};
}

std::span<std::byte> Program::state_image_for_test(SequenceHandle handle) {
    NINFER_ASSERT(find(handle).has_value(), "stale handle");
    return {state_image(handle.slot()), decoder_.state_layout().image_bytes()};
}

std::span<std::int32_t> Program::page_table_for_test(SequenceHandle handle) {
    return find_mutable(handle).value()->pages;
}

}  // namespace ninfer
