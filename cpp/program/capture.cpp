#include "cpp/program/capture.h"

#include <algorithm>

#include "cpp/base/commit_scope.h"
#include "cpp/program/checkpoint_removal.h"
#include "cpp/program/copy_polling.h"
#include "cpp/state/page_count.h"

namespace ninfer {

namespace {

Result<const Sequence*, Refusal> find_ready(const ContextState& state, SequenceHandle handle) {
    const auto found = state.sequences.find(handle);
    if (!found) return found.error();
    if (const auto refusal = state.not_ready(*found.value())) return *refusal;
    if (found.value()->computed < 1) return Refusal{RefusalKind::kBeyondFrontier, 1, found.value()->computed};
    return found.value();
}

// How the image of a checkpoint comes about.
enum class ImageRoute { kNone, kShare, kDevice, kSnapshot };

ImageRoute image_route(const ContextState& state, const Sequence& sequence, Tier tier) {
    if (!state.stores.has_images()) return ImageRoute::kNone;
    if (state.stores.images().find(sequence.image).value()->borrows()) return ImageRoute::kShare;
    return tier == Tier::kDevice ? ImageRoute::kDevice : ImageRoute::kSnapshot;
}

ResourceAxes room_of(const ContextState& state, ImageRoute route) {
    if (route == ImageRoute::kDevice) return {.image_slots_checkpoint = 1};
    if (route == ImageRoute::kSnapshot) return {.host_blocks = state.stores.images().blocks_per_image()};
    return {};
}

std::optional<Refusal> check_room(const ContextState& state, const ResourceAxes& room) {
    if (room.image_slots_checkpoint > 0 && state.stores.images().checkpoint_slots_free() < room.image_slots_checkpoint)
        return Refusal{RefusalKind::kNoImageSlots, room.image_slots_checkpoint,
                       state.stores.images().checkpoint_slots_free()};
    if (room.host_blocks > state.stores.host().blocks_free())
        return Refusal{RefusalKind::kNoHostBlocks, room.host_blocks, state.stores.host().blocks_free()};
    return std::nullopt;
}

// The pages that remain must hold every token that the sequence was promised.
std::optional<Refusal> check_growth(const ContextState& state, const Sequence& sequence) {
    const std::int64_t copies = state.stores.kv().capture_shape(sequence.kv).value().copies;
    const AddressSpace& space = *state.stores.kv().find(sequence.kv).value();
    const std::int64_t tokens = (space.pages_mapped() + space.reserved - copies) * kPageTokens;
    if (copies > 0 && tokens < sequence.reserved)
        return Refusal{RefusalKind::kOverReservation, sequence.reserved, tokens};
    return std::nullopt;
}

ImageId retain_source(ContextState& state, ImageId image) {
    const ImageId source = state.stores.images().find(image).value()->source;
    const auto retained = state.stores.images().retain(source);
    NINFER_ASSERT(retained.has_value(), "a borrowed image is not frozen");
    return source;
}

// The image that a capture leaves behind; none if it is still to come.
ImageId captured_image(ContextState& state, ImageId image, ImageRoute route) {
    switch (route) {
        case ImageRoute::kShare:
            return retain_source(state, image);
        case ImageRoute::kDevice:
            return state.stores.images().freeze(image).value();
        case ImageRoute::kNone:
        case ImageRoute::kSnapshot:
            return {};
    }
    return {};
}

// The same when the sequence ends: its own image, or nothing of it, stays.
ImageId finished_image(ContextState& state, ImageId image, ImageRoute route) {
    if (route == ImageRoute::kDevice) {
        const auto finished = state.stores.images().finish(image);
        NINFER_ASSERT(finished.has_value(), "a checked finish of an image was refused");
        return image;
    }
    ImageId kept;
    if (route == ImageRoute::kShare) kept = retain_source(state, image);
    release_or_condemn(state, {{}, image});
    return kept;
}

LedgerId finished_ledger(ContextState& state, const Sequence& sequence) {
    LedgerStore& ledgers = state.stores.ledgers();
    if (sequence.length == sequence.computed) {
        const auto sealed = ledgers.seal(sequence.ledger);
        NINFER_ASSERT(sealed.has_value(), "a sequence's ledger is gone before it");
        return sequence.ledger;
    }
    const LedgerId kept = ledgers.fork(sequence.ledger, sequence.computed, sequence.computed).value();
    release_ledger(state, sequence.ledger);
    return kept;
}

bool has_computed(const Sequence& sequence) { return sequence.computed > sequence.takeover.start; }

// The capture has taken the tail with which a consumed source could have been given back: hold that.
void hold_source(ContextState& state, SequenceHandle handle, const Checkpoint& captured) {
    Sequence& sequence = state.sequences.at(handle);
    if (!sequence.takeover.consumed || has_computed(sequence)) return;
    sequence.takeover.kv = state.stores.kv().share(captured.kv, captured.frontier).value();
    sequence.takeover.ledger =
        state.stores.ledgers().fork(captured.ledger, captured.frontier, captured.frontier).value();
}

// A consumed source, out of what the sequence has of it.
Checkpoint source_again(ContextState& state, SequenceHandle handle) {
    const Sequence& sequence = state.sequences.at(handle);
    const Takeover& takeover = sequence.takeover;
    Checkpoint source;
    source.owner = sequence.owner;
    source.kind = takeover.kind;
    if (takeover.holds_source()) {
        source.kv = takeover.kv;
        source.ledger = takeover.ledger;
        release_or_condemn(state, {sequence.kv, {}});
        release_ledger(state, sequence.ledger);
    } else {
        source.kv = sequence.kv;
        source.ledger = finished_ledger(state, sequence);
        const auto finished = state.stores.kv().finish(sequence.kv);
        NINFER_ASSERT(finished.has_value(), "a space that waits for its tail holds no source");
    }
    source.frontier = state.stores.kv().find(source.kv).value()->frontier;
    source.image = finished_image(state, sequence.image, image_route(state, sequence, Tier::kDevice));
    return source;
}

}  // namespace

Result<ResourceAxes, Refusal> capture_room(const ContextState& state, SequenceHandle handle,
                                           const CaptureRequest& request) {
    const auto found = find_ready(state, handle);
    if (!found) return found.error();
    if (const auto refusal = check_growth(state, *found.value())) return *refusal;
    return room_of(state, image_route(state, *found.value(), request.image_tier));
}

Result<ResourceAxes, Refusal> finish_room(const ContextState& state, SequenceHandle handle,
                                          const FinishRequest& request) {
    const auto found = find_ready(state, handle);
    if (!found) return found.error();
    return room_of(state, image_route(state, *found.value(), request.image_tier));
}

Result<CheckpointHandle, Refusal> capture(ContextState& state, SequenceHandle handle, const CaptureRequest& request) {
    if (const auto refusal = state.check_no_transaction()) return *refusal;
    const auto room = capture_room(state, handle, request);
    if (!room) return room.error();
    if (const auto refusal = check_room(state, room.value())) return *refusal;
    const Sequence& sequence = state.sequences.at(handle);
    const ImageRoute route = image_route(state, sequence, request.image_tier);

    const CommitScope commit;
    Checkpoint checkpoint;
    checkpoint.owner = request.own ? sequence.owner : state.owners.add_owner(OwnerRole::kShared);
    checkpoint.kind = request.kind;
    checkpoint.frontier = sequence.computed;
    checkpoint.ledger = state.stores.ledgers().fork(sequence.ledger, sequence.computed, sequence.computed).value();
    checkpoint.kv = state.stores.kv().freeze(sequence.kv).value();
    checkpoint.image = captured_image(state, sequence.image, route);
    checkpoint.awaits_image = route == ImageRoute::kSnapshot;
    const CheckpointHandle captured = state.owners.add(checkpoint);
    ReplicaCopies& copies = state.stores.copies();
    if (route == ImageRoute::kSnapshot)
        add_job(state, {copies.start_snapshot(sequence.image).value(), CopyPurpose::kSnapshot, handle, captured});
    else
        ++state.resource_revision;
    if (!state.stores.kv().facts(sequence.kv).value().settled) {
        hold_source(state, handle, checkpoint);
        add_job(state, {copies.start_tail(sequence.kv).value(), CopyPurpose::kSettling, handle, {}});
    }
    return captured;
}

Result<CaptureShape, Refusal> capture_shape(const ContextState& state, SequenceHandle handle) {
    const auto found = state.sequences.find(handle);
    if (!found) return found.error();
    if (found.value()->copy_failed) return *found.value()->not_ready();
    return state.stores.kv().capture_shape(found.value()->kv);
}

Result<OwnerHandle, Refusal> finish(ContextState& state, SequenceHandle handle, const FinishRequest& request) {
    if (const auto refusal = state.check_no_transaction()) return *refusal;
    const auto room = finish_room(state, handle, request);
    if (!room) return room.error();
    if (const auto refusal = check_room(state, room.value())) return *refusal;
    const Sequence& sequence = state.sequences.at(handle);
    const ImageRoute route = image_route(state, sequence, request.image_tier);

    const CommitScope commit;
    Checkpoint checkpoint;
    checkpoint.owner = sequence.owner;
    checkpoint.kind = request.kind;
    checkpoint.frontier = sequence.computed;
    checkpoint.ledger = finished_ledger(state, sequence);
    const auto finished = state.stores.kv().finish(sequence.kv);
    NINFER_ASSERT(finished.has_value(), "a settled space cannot finish");
    checkpoint.kv = sequence.kv;
    checkpoint.awaits_image = route == ImageRoute::kSnapshot;
    // The copy pins the image before the sequence lets go of it.
    CopyId snapshot;
    if (route == ImageRoute::kSnapshot) snapshot = state.stores.copies().start_snapshot(sequence.image).value();
    checkpoint.image = finished_image(state, sequence.image, route);
    const OwnerHandle owner = sequence.owner;
    state.sequences.close(handle);
    const CheckpointHandle endpoint = state.owners.add(checkpoint);
    state.owners.set_role(owner, OwnerRole::kPrivate);
    if (route == ImageRoute::kSnapshot) add_job(state, {snapshot, CopyPurpose::kSnapshot, {}, endpoint});
    release_condemned(state);
    ++state.resource_revision;
    return owner;
}

bool gives_back(const ContextState& state, const Sequence& sequence) {
    if (!sequence.takeover.taken || has_computed(sequence)) return false;
    if (!sequence.takeover.consumed) return !state.owners.find(sequence.owner).value()->checkpoints.empty();
    return image_route(state, sequence, Tier::kDevice) != ImageRoute::kDevice ||
           state.stores.images().checkpoint_slots_free() > 0;
}

void give_back(ContextState& state, SequenceHandle handle) {
    const Sequence& sequence = state.sequences.at(handle);
    const OwnerHandle owner = sequence.owner;
    if (sequence.takeover.consumed) {
        state.owners.add(source_again(state, handle));
    } else {
        release_or_condemn(state, {sequence.kv, sequence.image});
        release_ledger(state, sequence.ledger);
    }
    state.sequences.close(handle);
    state.owners.set_role(owner, OwnerRole::kPrivate);
}

}  // namespace ninfer
