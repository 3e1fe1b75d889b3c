#include "cpp/program/checkpoint_placement.h"

#include "cpp/base/commit_scope.h"
#include "cpp/program/copy_polling.h"

namespace ninfer {

namespace {

bool is_on(const LogicalPage& page, Tier tier) { return tier == Tier::kDevice ? page.on_device() : page.on_host(); }
bool is_on(const StateImage& image, Tier tier) { return tier == Tier::kDevice ? image.on_device() : image.on_host(); }

// What of a checkpoint is to be copied.
struct Parts {
    std::vector<PageId> pages;
    ImageId image;  // or none
};

const StateImage* image_of(const ContextState& state, const Checkpoint& checkpoint) {
    if (checkpoint.image == ImageId{}) return nullptr;
    return state.stores.images().find(checkpoint.image).value();
}

std::optional<Refusal> check_room(const ContextState& state, const Parts& parts, Tier tier) {
    const auto pages = std::ssize(parts.pages);
    const std::int64_t images = parts.image == ImageId{} ? 0 : 1;
    const PagedKvStore& kv = state.stores.kv();
    if (tier == Tier::kHost) {
        const std::int64_t image_blocks = images > 0 ? state.stores.images().blocks_per_image() : 0;
        const std::int64_t blocks = pages * kv.blocks_per_page() + image_blocks;
        const std::int64_t free = state.stores.host().blocks_free();
        if (blocks > free) return Refusal{RefusalKind::kNoHostBlocks, blocks, free};
        return std::nullopt;
    }
    if (pages > kv.device().pages_unpromised())
        return Refusal{RefusalKind::kNoPages, pages, kv.device().pages_unpromised()};
    if (images > 0 && state.stores.images().checkpoint_slots_free() < 1)
        return Refusal{RefusalKind::kNoImageSlots, 1, state.stores.images().checkpoint_slots_free()};
    return std::nullopt;
}

Result<Parts, Refusal> parts_to_copy(const ContextState& state, const Checkpoint& checkpoint, Tier tier) {
    Parts parts;
    std::int64_t copying = 0;
    state.stores.kv().for_each_page(checkpoint.kv, [&](PageId id, const LogicalPage& page) {
        if (is_on(page, tier)) return;
        parts.pages.push_back(id);
        copying += page.copying ? 1 : 0;
    });
    if (const StateImage* image = image_of(state, checkpoint); image != nullptr && !is_on(*image, tier)) {
        parts.image = checkpoint.image;
        copying += image->copying ? 1 : 0;
    }
    if (copying > 0) return Refusal{RefusalKind::kCopyInFlight, 0, copying};
    return parts;
}

}  // namespace

bool is_valid(const ContextState& state, const Checkpoint& checkpoint) {
    if (checkpoint.awaits_image || !state.stores.kv().valid(checkpoint.kv).value()) return false;
    const StateImage* image = image_of(state, checkpoint);
    return image == nullptr || image->has_content();
}

Result<CheckpointSummary, Refusal> summarise(const ContextState& state, CheckpointHandle handle) {
    const auto found = state.owners.find(handle);
    if (!found) return found.error();
    const Checkpoint& checkpoint = *found.value();
    const SpaceFacts pages = state.stores.kv().facts(checkpoint.kv).value();
    CheckpointSummary summary;
    summary.kind = checkpoint.kind;
    summary.owner = checkpoint.owner;
    summary.frontier = checkpoint.frontier;
    summary.pages = pages.pages;
    summary.pages_on_device = pages.pages_on_device;
    summary.pages_on_host = pages.pages_on_host;
    summary.pages_exclusive = pages.pages_exclusive;
    summary.open_copies = checkpoint.open_copies;
    summary.valid = is_valid(state, checkpoint);
    summary.device_ready = !checkpoint.awaits_image && pages.device_ready();
    if (const StateImage* image = image_of(state, checkpoint)) {
        summary.has_image = true;
        summary.image_on_device = image->on_device();
        summary.image_on_host = image->on_host();
        summary.device_ready = summary.device_ready && image->on_device();
    }
    return summary;
}

Result<std::int64_t, Refusal> start_copy(ContextState& state, CheckpointHandle handle, Tier tier) {
    if (const auto refusal = state.check_no_transaction()) return *refusal;
    const auto found = state.owners.find(handle);
    if (!found) return found.error();
    const Checkpoint& checkpoint = *found.value();
    if (checkpoint.open_copies > 0) return Refusal{RefusalKind::kCopyInFlight, 0, checkpoint.open_copies};
    const auto parts = parts_to_copy(state, checkpoint, tier);
    if (!parts) return parts.error();
    if (const auto refusal = check_room(state, parts.value(), tier)) return *refusal;

    const CommitScope commit;
    std::int64_t bytes = 0;
    const auto add = [&](Result<CopyId, Refusal> copy) {
        const CopyId id = copy.value();
        bytes += static_cast<std::int64_t>(state.stores.copies().find(id).value()->bytes);
        add_job(state, {id, CopyPurpose::kPlacement, {}, handle});
    };
    for (const PageId page : parts.value().pages) add(state.stores.copies().start_page(page, tier));
    if (parts.value().image != ImageId{}) add(state.stores.copies().start_image(parts.value().image, tier));
    return bytes;
}

Result<std::int64_t, Refusal> drop(ContextState& state, CheckpointHandle handle, Tier tier) {
    if (const auto refusal = state.check_no_transaction()) return *refusal;
    const auto found = state.owners.find(handle);
    if (!found) return found.error();
    const Checkpoint& checkpoint = *found.value();
    if (checkpoint.open_copies > 0) return Refusal{RefusalKind::kCopyInFlight, 0, checkpoint.open_copies};
    std::int64_t dropped = 0;
    std::optional<Refusal> first;
    const auto count = [&](const Result<Nothing, Refusal>& result) {
        if (result)
            ++dropped;
        else if (!first)
            first = result.error();
    };
    state.stores.kv().for_each_page(checkpoint.kv, [&](PageId id, const LogicalPage& page) {
        if (is_on(page, tier)) count(state.stores.kv().drop(id, tier));
    });
    if (const StateImage* image = image_of(state, checkpoint); image != nullptr && is_on(*image, tier))
        count(state.stores.images().drop(checkpoint.image, tier));
    if (dropped == 0) return first.value_or(Refusal{RefusalKind::kNoReplica, static_cast<std::int64_t>(tier), -1});
    ++state.resource_revision;
    return dropped;
}

}  // namespace ninfer
