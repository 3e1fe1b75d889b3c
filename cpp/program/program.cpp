#include "cpp/program/program.h"

#include <algorithm>

#include "cpp/memory/host_copy_engine.h"
#include "cpp/program/checkpoint_placement.h"
#include "cpp/program/checkpoint_removal.h"
#include "cpp/program/context_transaction.h"

namespace ninfer {

namespace {

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

ContextSizes context_sizes(const Decoder& decoder, const ProgramOptions& options) {
    ContextSizes sizes;
    sizes.kv_pages = options.kv_pages;
    // A model without attention layers has pages, too: they count tokens.
    sizes.page_bytes = std::max<std::size_t>(decoder.page_layout().group_bytes(), 64);
    sizes.image_bytes = decoder.state_layout().image_bytes();
    sizes.lanes = options.max_concurrency;
    sizes.checkpoint_slots = options.checkpoint_slots;
    sizes.host_bytes = options.host_bytes;
    sizes.max_context = options.max_context;
    sizes.vocab_size = decoder.spec().vocab_size;
    return sizes;
}

}  // namespace

Program::Program(DecoderSpec spec, std::shared_ptr<const WeightStore> weights, KvStorage kv_storage,
                 const ProgramOptions& options)
    : Program(std::move(spec), std::move(weights), kv_storage, options, std::make_unique<HostCopyEngine>()) {}

Program::Program(DecoderSpec spec, std::shared_ptr<const WeightStore> weights, KvStorage kv_storage,
                 const ProgramOptions& options, std::unique_ptr<CopyEngine> engine)
    : weights_(std::move(weights)),
      decoder_(std::move(spec), kv_storage),
      valid_tokens_(checked(options, decoder_.spec()).valid_tokens),
      context_(context_sizes(decoder_, options), std::move(engine)),
      units_(decoder_, context_, options) {}

Result<SequenceHandle, Refusal> Program::open_sequence(const SequenceRequest& request) {
    return open_root(context_, request);
}

Result<SequenceHandle, Refusal> Program::open_from(const SequenceSource& source, const SequenceRequest& request) {
    return ninfer::open_from(context_, source, request);
}

Result<Nothing, Refusal> Program::close_sequence(SequenceHandle handle) {
    if (const auto refusal = units_.check_not_pending(handle)) return *refusal;
    return ninfer::close_sequence(context_, handle);
}

Result<Nothing, Refusal> Program::append(SequenceHandle handle, const LedgerTokens& tokens) {
    return units_.append(handle, tokens);
}

Result<Nothing, Refusal> Program::append_prompt(SequenceHandle handle, const PreparedPrompt& prompt) {
    const auto found = find(handle);
    if (!found) return found.error();
    const Sequence& sequence = *found.value();
    const IdentityHeader& header = *context_.stores.ledgers().header(sequence.ledger).value();
    if (header != prompt.header()) return Refusal{RefusalKind::kMismatch, sequence.length, 0};
    if (sequence.length > prompt.size()) return Refusal{RefusalKind::kBeyondFrontier, sequence.length, prompt.size()};
    if (sequence.length == prompt.size()) return append(handle, {}, TokenOrigin::kPrompt);
    const auto spans = spans_from(prompt.view().all_spans(), sequence.length);
    const auto tokens = prompt.tokens().subspan(static_cast<std::size_t>(sequence.length));
    return append(handle, {tokens, spans, TokenOrigin::kPrompt});
}

Result<Nothing, Refusal> Program::record_rewrite_frontier(SequenceHandle handle, std::int64_t frontier) {
    const auto found = find(handle);
    if (!found) return found.error();
    return context_.stores.ledgers().record_rewrite_frontier(found.value()->ledger, frontier);
}

Result<std::int64_t, Refusal> Program::prefill(SequenceHandle handle, std::int64_t limit) {
    return units_.prefill(handle, limit);
}

Result<PendingBatch, Refusal> Program::finish_prefill(const RowRequest& request) {
    return units_.finish_prefill(request);
}

Result<PendingBatch, Refusal> Program::decode(std::span<const RowRequest> rows) { return units_.decode(rows); }

Result<std::int64_t, Refusal> Program::prefill_logits(SequenceHandle handle, std::int64_t limit,
                                                      std::span<float> logits) {
    return units_.prefill_logits(handle, limit, logits);
}

Result<Nothing, Refusal> Program::commit(const PendingBatch& batch, std::span<const std::int32_t> accepted) {
    return units_.commit(batch, accepted);
}

Result<Nothing, Refusal> Program::abort(const PendingBatch& batch) { return units_.abort(batch); }

bool Program::abort_pending() { return units_.abort_pending(); }

Result<CheckpointHandle, Refusal> Program::capture(SequenceHandle handle, const CaptureRequest& request) {
    if (const auto refusal = units_.check_not_pending(handle)) return *refusal;
    return ninfer::capture(context_, handle, request);
}

Result<CaptureShape, Refusal> Program::capture_shape(SequenceHandle handle) const {
    return ninfer::capture_shape(context_, handle);
}

Result<OwnerHandle, Refusal> Program::finish(SequenceHandle handle, const FinishRequest& request) {
    if (const auto refusal = units_.check_not_pending(handle)) return *refusal;
    return ninfer::finish(context_, handle, request);
}

Result<OwnerSummary, Refusal> Program::owner(OwnerHandle handle) const {
    const auto found = context_.owners.find(handle);
    if (!found) return found.error();
    return *found.value();
}

Result<CheckpointSummary, Refusal> Program::checkpoint(CheckpointHandle handle) const {
    return summarise(context_, handle);
}

Result<std::int64_t, Refusal> Program::start_copy(CheckpointHandle handle, Tier tier) {
    return ninfer::start_copy(context_, handle, tier);
}

CopyProgress Program::poll_copies(std::size_t max_bytes) { return ninfer::poll_copies(context_, max_bytes); }

Result<std::int64_t, Refusal> Program::cancel_copies(CheckpointHandle handle) {
    return ninfer::cancel_copies(context_, handle);
}

Result<std::int64_t, Refusal> Program::drop(CheckpointHandle handle, Tier tier) {
    return ninfer::drop(context_, handle, tier);
}

Result<Nothing, Refusal> Program::delete_checkpoint(CheckpointHandle handle) {
    return ninfer::delete_checkpoint(context_, handle);
}

Result<Nothing, Refusal> Program::release_owner(OwnerHandle handle) { return ninfer::release_owner(context_, handle); }

Result<Digest128, Refusal> Program::digest_at(CheckpointHandle handle, std::int64_t frontier) const {
    const auto found = context_.owners.find(handle);
    if (!found) return found.error();
    const Checkpoint& checkpoint = *found.value();
    if (frontier < 0 || frontier > checkpoint.frontier)
        return Refusal{RefusalKind::kBeyondFrontier, frontier, checkpoint.frontier};
    return context_.stores.ledgers().digest_at(checkpoint.ledger, frontier);
}

Result<Nothing, Refusal> Program::verify(const PromptView& prompt, std::span<const CheckpointHandle> checkpoints,
                                         std::span<Verification> verifications) {
    candidates_.clear();
    for (const CheckpointHandle handle : checkpoints) {
        const auto found = context_.owners.find(handle);
        if (!found) return found.error();
        candidates_.push_back({found.value()->ledger, found.value()->frontier});
    }
    return context_.stores.verifier().verify(prompt, candidates_, verifications);
}

std::optional<Refusal> Program::check_not_pending(const Publication& publication) const {
    if (const auto* capture = std::get_if<CapturePublication>(&publication))
        return units_.check_not_pending(capture->sequence);
    if (const auto* finish = std::get_if<FinishPublication>(&publication))
        return units_.check_not_pending(finish->sequence);
    return std::nullopt;
}

Result<std::optional<ResourceResult>, Refusal> Program::start_transaction(
    ContextPlan plan, std::span<const OwnerHandle> protected_owners) {
    if (const auto refusal = check_not_pending(plan.publication)) return *refusal;
    return ninfer::start_transaction(context_, std::move(plan), protected_owners);
}

Result<std::optional<ResourceResult>, Refusal> Program::advance_transaction() {
    if (context_.transaction == nullptr) return std::optional<ResourceResult>{};
    if (const auto refusal = check_not_pending(context_.transaction->publication)) return *refusal;
    return ninfer::advance_transaction(context_);
}

bool Program::transaction_waits() const { return ninfer::transaction_waits(context_); }

std::optional<TransactionPhase> Program::transaction_phase() const {
    if (context_.transaction == nullptr) return std::nullopt;
    return context_.transaction->running->phase();
}

bool Program::cancel_transaction() { return ninfer::cancel_transaction(context_); }

Result<const Sequence*, Refusal> Program::find(SequenceHandle handle) const { return context_.sequences.find(handle); }

Result<std::vector<std::int32_t>, Refusal> Program::tokens(SequenceHandle handle) const {
    const auto found = find(handle);
    if (!found) return found.error();
    std::vector<std::int32_t> tokens(static_cast<std::size_t>(found.value()->length));
    const auto read = context_.stores.ledgers().read(found.value()->ledger, 0, tokens);
    NINFER_ASSERT(read.has_value(), "a ledger is shorter than its sequence");
    return tokens;
}

ProgramStatistics Program::statistics() const {
    const ContextStores& stores = context_.stores;
    ProgramStatistics statistics;
    statistics.pages_total = stores.kv().device().pages_total();
    statistics.pages_free = stores.kv().device().pages_unpromised();
    statistics.lanes_total = context_.sequences.lanes();
    statistics.lanes_open = context_.sequences.lanes_open();
    statistics.state_image_bytes = static_cast<std::int64_t>(decoder_.state_layout().image_bytes());
    statistics.page_bytes = static_cast<std::int64_t>(stores.kv().device().page_bytes());
    statistics.host_block_bytes = static_cast<std::int64_t>(stores.host().block_bytes());
    statistics.weight_bytes = static_cast<std::int64_t>(weights_->total_bytes());
    statistics.scratch_peak_bytes = units_.scratch_peak_bytes();
    statistics.tokens_computed = units_.tokens_computed();
    statistics.used = stores.copies().used();
    statistics.capacity = stores.copies().capacity();
    statistics.owners = context_.owners.owners();
    statistics.checkpoints = context_.owners.checkpoints();
    statistics.copies_open = stores.copies().open_copies();
    statistics.copies_draining = stores.copies().draining_copies();
    statistics.condemned = std::ssize(context_.condemned);
    statistics.bookkeeping_bytes = static_cast<std::int64_t>(context_.bookkeeping_bytes());
    statistics.resource_revision = context_.resource_revision;
    return statistics;
}

std::span<std::byte> Program::state_image_for_test(SequenceHandle handle) {
    NINFER_ASSERT(context_.stores.has_images(), "a model without recurrent layers has no state image");
    const auto* data = context_.stores.images().read(context_.sequences.at(handle).image);
    return {const_cast<std::byte*>(data), decoder_.state_layout().image_bytes()};
}

std::span<std::int32_t> Program::page_table_for_test(SequenceHandle handle) {
    const auto table = context_.stores.kv().page_table(context_.sequences.at(handle).kv);
    return {const_cast<std::int32_t*>(table.data()), table.size()};
}

std::span<std::byte> Program::state_image_for_test(CheckpointHandle handle) {
    const ImageId image = context_.owners.at(handle).image;
    if (image == ImageId{}) return {};
    const StateImage& found = *context_.stores.images().find(image).value();
    if (!found.on_device()) return {};
    return {context_.stores.images().slot_data(found.slot), decoder_.state_layout().image_bytes()};
}

std::vector<std::int32_t> Program::device_pages_for_test(CheckpointHandle handle) const {
    std::vector<std::int32_t> pages;
    context_.stores.kv().for_each_page(context_.owners.find(handle).value()->kv,
                                       [&](PageId, const LogicalPage& page) { pages.push_back(page.device_page); });
    return pages;
}

std::span<std::byte> Program::device_page_for_test(std::int32_t page) {
    const KvPoolView pool = context_.stores.kv().pool();
    NINFER_ASSERT_LE(0, page);
    NINFER_ASSERT_LT(page, context_.stores.kv().device().pages_total());
    return {pool.data + static_cast<std::size_t>(page) * pool.stride_bytes, pool.stride_bytes};
}

}  // namespace ninfer
