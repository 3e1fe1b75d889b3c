#include "cpp/program/sequence_opening.h"

#include <algorithm>

#include "cpp/base/commit_scope.h"
#include "cpp/program/capture.h"
#include "cpp/program/checkpoint_removal.h"
#include "cpp/program/copy_polling.h"
#include "cpp/state/page_count.h"

namespace ninfer {

namespace {

// Room for one more sequence besides its pages.
std::optional<Refusal> check_place(const ContextState& state, const SequenceRequest& request) {
    NINFER_ASSERT_LE(0, request.tokens);
    NINFER_ASSERT_LE(0, request.captures);
    if (request.tokens > state.max_context)
        return Refusal{RefusalKind::kOverContext, request.tokens, state.max_context};
    return state.check_lane();
}

std::optional<Refusal> check_consumption(const ContextState& state, CheckpointHandle handle,
                                         std::span<const CheckpointHandle> deeper) {
    const Checkpoint& checkpoint = *state.owners.find(handle).value();
    if (checkpoint.open_copies > 0) return Refusal{RefusalKind::kCopyInFlight, 0, checkpoint.open_copies};
    if (const auto refusal = check_takeover(state, checkpoint.owner)) return refusal;
    // A restore may fail, and then owner and source would be lost with the sequence (T6).
    if (state.stores.has_images() && !state.stores.images().find(checkpoint.image).value()->on_device())
        return Refusal{RefusalKind::kNotOnDevice, 1, 0};
    return check_removal(state, deeper);
}

// Whether a consumed space's partial tail is written in place, so that it needs no page for a copy.
bool continues_in_place(const ContextState& state, SpaceId kv, std::int64_t frontier) {
    if (is_aligned(frontier)) return false;
    std::int32_t holders = 0;
    state.stores.kv().for_each_run(kv, [&](const RunFacts& run) { holders = holders == 0 ? run.holders : holders; });
    return holders == 1;
}

// Whether a consumed space becomes the sequence's. Else its beginning is shared, and it goes when the sequence's own tail
// is there.
bool moves_pages(const ContextState& state, const Checkpoint& checkpoint, std::int64_t frontier) {
    if (frontier < checkpoint.frontier) return false;
    return is_aligned(frontier) || continues_in_place(state, checkpoint.kv, frontier);
}

Result<SpaceId, Refusal> start_pages(ContextState& state, const Checkpoint& checkpoint, bool moves,
                                     std::int64_t frontier, const SequenceRequest& request) {
    PagedKvStore& kv = state.stores.kv();
    const std::int64_t pages = pages_of(request.tokens) - frontier / kPageTokens + request.captures;
    if (!moves) return kv.fork(checkpoint.kv, frontier, pages);
    return kv.consume(checkpoint.kv, pages - (continues_in_place(state, checkpoint.kv, frontier) ? 1 : 0));
}

// Nothing is refused here: room, validity and copies were checked.
ImageId start_image(ContextState& state, const Checkpoint& checkpoint, bool consumes) {
    if (!state.stores.has_images()) return {};
    StateImageStore& images = state.stores.images();
    const StateImage& source = *images.find(checkpoint.image).value();
    if (source.on_device() && consumes && source.references == 1 && source.pins == 0)
        return images.consume(checkpoint.image).value();
    const ImageId started =
        source.on_device() ? images.fork(checkpoint.image).value() : images.restore(checkpoint.image).value();
    if (consumes) release_or_condemn(state, {{}, checkpoint.image});
    return started;
}

void count_inherited(const ContextState& state, Sequence& sequence) {
    if (sequence.seen_counts.empty()) return;
    for (std::int64_t begin = 0; begin < sequence.length;) {
        const auto tokens = state.stores.ledgers().view(sequence.ledger, begin).value();
        for (const std::int32_t token : tokens) ++sequence.seen_counts[static_cast<std::size_t>(token)];
        begin += std::ssize(tokens);
    }
}

void start_settling(ContextState& state, SequenceHandle handle) {
    const Sequence& sequence = state.sequences.at(handle);
    ReplicaCopies& copies = state.stores.copies();
    if (!state.stores.kv().facts(sequence.kv).value().settled)
        add_job(state, {copies.start_tail(sequence.kv).value(), CopyPurpose::kSettling, handle, {}});
    if (state.stores.has_images() && state.stores.images().find(sequence.image).value()->unsettled)
        add_job(state, {copies.start_restore(sequence.image).value(), CopyPurpose::kSettling, handle, {}});
}

// The consumed checkpoint's image has gone to the sequence or is condemned, and its pages if they moved: the entry goes.
// Pages that were only shared, and the ledger, are held until the sequence's own tail is there.
void remove_consumed(ContextState& state, CheckpointHandle handle, bool moved, SequenceParts& parts) {
    const Checkpoint checkpoint = state.owners.remove(handle);
    if (moved) {
        release_ledger(state, checkpoint.ledger);
        return;
    }
    parts.takeover.kv = checkpoint.kv;
    parts.takeover.ledger = checkpoint.ledger;
    if (state.stores.kv().facts(parts.kv).value().settled) release_source(state, parts.takeover);
}

void discard_sequence(ContextState& state, SequenceHandle handle) {
    Sequence& sequence = state.sequences.at(handle);
    const std::vector<CheckpointHandle> captures = state.owners.find(sequence.owner).value()->checkpoints;
    // Copies first: a checkpoint that waits for its image goes with its cancellation.
    for (const CheckpointHandle capture : captures) {
        const auto cancelled = cancel_copies(state, capture);
        NINFER_ASSERT(cancelled.has_value(), "an owner lists a checkpoint that is gone");
    }
    release_or_condemn(state, {sequence.kv, sequence.image});
    release_source(state, sequence.takeover);
    for (const CheckpointHandle capture : captures)
        if (state.owners.find(capture)) discard_checkpoint(state, capture);
    state.owners.remove_owner(sequence.owner);
    release_ledger(state, sequence.ledger);
    state.sequences.close(handle);
}

}  // namespace

std::optional<Refusal> check_source(const ContextState& state, const Checkpoint& checkpoint, std::int64_t frontier,
                                    const SequenceRequest& request) {
    if (checkpoint.awaits_image) return Refusal{RefusalKind::kCopyInFlight, 0, checkpoint.open_copies};
    if (frontier > checkpoint.frontier) return Refusal{RefusalKind::kBeyondFrontier, frontier, checkpoint.frontier};
    if (frontier < checkpoint.frontier && state.stores.has_images())
        return Refusal{RefusalKind::kBackwards, frontier, checkpoint.frontier};
    const IdentityHeader& header = *state.stores.ledgers().header(checkpoint.ledger).value();
    if (!(header == request.header)) return Refusal{RefusalKind::kMismatch, frontier, 0};
    if (request.tokens < frontier) return Refusal{RefusalKind::kOverReservation, frontier, request.tokens};
    return std::nullopt;
}

std::optional<Refusal> check_takeover(const ContextState& state, OwnerHandle owner) {
    const OwnerRole role = state.owners.find(owner).value()->role;
    if (role == OwnerRole::kActive) return Refusal{RefusalKind::kActive, 0, 1};
    if (role == OwnerRole::kShared)
        return Refusal{RefusalKind::kShared, static_cast<std::int64_t>(OwnerRole::kPrivate),
                       static_cast<std::int64_t>(role)};
    return std::nullopt;
}

SequenceHandle begin_sequence(ContextState& state, const SequenceRequest& request, const SequenceParts& parts) {
    const SequenceHandle handle = state.sequences.open(request.count_tokens);
    Sequence& sequence = state.sequences.at(handle);
    sequence.reserved = request.tokens;
    sequence.length = parts.frontier;
    sequence.computed = parts.frontier;
    sequence.ledger = parts.ledger;
    sequence.kv = parts.kv;
    sequence.image = parts.image;
    sequence.owner = parts.owner;
    sequence.takeover = parts.takeover;
    count_inherited(state, sequence);
    return handle;
}

std::vector<CheckpointHandle> deeper_checkpoints(const ContextState& state, CheckpointHandle source,
                                                 std::int64_t frontier) {
    const Owner& owner = *state.owners.find(state.owners.find(source).value()->owner).value();
    std::vector<CheckpointHandle> deeper;
    for (const CheckpointHandle handle : owner.checkpoints)
        if (handle != source && state.owners.find(handle).value()->frontier > frontier) deeper.push_back(handle);
    return deeper;
}

Result<SequenceHandle, Refusal> open_root(ContextState& state, const SequenceRequest& request) {
    if (const auto refusal = state.check_no_transaction()) return *refusal;
    if (const auto refusal = check_place(state, request)) return *refusal;
    state.sequences.make_room(request.count_tokens);
    const CommitScope commit;
    auto kv = state.stores.kv().open(pages_of(request.tokens) + request.captures);
    if (!kv) return kv.error();
    SequenceParts parts;
    parts.kv = kv.value();
    if (state.stores.has_images()) parts.image = state.stores.images().open().value();
    parts.ledger = state.stores.ledgers().open(request.header, request.tokens);
    parts.owner = state.owners.add_owner(OwnerRole::kActive);
    ++state.resource_revision;
    return begin_sequence(state, request, parts);
}

Result<SequenceHandle, Refusal> open_from(ContextState& state, const SequenceSource& source,
                                          const SequenceRequest& request) {
    if (const auto refusal = state.check_no_transaction()) return *refusal;
    const auto found = state.owners.find(source.checkpoint);
    if (!found) return found.error();
    const Checkpoint checkpoint = *found.value();
    const std::int64_t frontier = source.frontier.value_or(checkpoint.frontier);
    // One that would be cut cannot go on as a checkpoint of an owner that ends before it.
    const bool takes_owner = source.use != SourceUse::kRetain;
    const bool consumes = source.use == SourceUse::kConsume || (takes_owner && frontier < checkpoint.frontier);
    NINFER_ASSERT_LE(0, frontier);
    if (const auto refusal = check_source(state, checkpoint, frontier, request)) return *refusal;
    if (const auto refusal = check_place(state, request)) return *refusal;
    std::vector<CheckpointHandle> deeper;
    if (takes_owner) {
        deeper = deeper_checkpoints(state, source.checkpoint, frontier);
        if (const auto refusal = check_consumption(state, source.checkpoint, deeper)) return *refusal;
    }
    state.sequences.make_room(request.count_tokens);
    const CommitScope commit;
    const bool moves = consumes && moves_pages(state, checkpoint, frontier);
    const auto kv = start_pages(state, checkpoint, moves, frontier, request);
    if (!kv) return kv.error();

    SequenceParts parts{{}, kv.value(), start_image(state, checkpoint, consumes), checkpoint.owner, frontier, {}};
    parts.ledger = state.stores.ledgers().fork(checkpoint.ledger, frontier, request.tokens).value();
    if (takes_owner) {
        state.owners.set_role(checkpoint.owner, OwnerRole::kActive);
        parts.takeover = {.taken = true, .consumed = consumes, .kind = checkpoint.kind, .start = frontier};
        for (const CheckpointHandle handle : deeper) discard_checkpoint(state, handle);
        if (consumes) remove_consumed(state, source.checkpoint, moves, parts);
    } else {
        parts.owner = state.owners.add_owner(OwnerRole::kActive);
    }
    const SequenceHandle handle = begin_sequence(state, request, parts);
    ++state.resource_revision;
    start_settling(state, handle);
    return handle;
}

Result<Nothing, Refusal> close_sequence(ContextState& state, SequenceHandle handle) {
    if (const auto refusal = state.check_no_transaction()) return *refusal;
    const auto found = state.sequences.find(handle);
    if (!found) return found.error();
    const CommitScope commit;
    const std::uint64_t revision = state.resource_revision;
    cancel_settling(state, handle);
    if (gives_back(state, *found.value()))
        give_back(state, handle);
    else
        discard_sequence(state, handle);
    release_condemned(state);
    state.resource_revision = revision + 1;
    return Nothing{};
}

}  // namespace ninfer
