#include "cpp/program/checkpoint_removal.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "cpp/base/commit_scope.h"

namespace ninfer {

namespace {

// A run goes when all its holders do.
std::optional<Refusal> check_pages(const ContextState& state, std::span<const CheckpointHandle> checkpoints) {
    std::unordered_map<std::int32_t, std::int32_t> leaving;
    std::optional<Refusal> refusal;
    for (const CheckpointHandle handle : checkpoints)
        state.stores.kv().for_each_run(state.owners.find(handle).value()->kv, [&](const RunFacts& run) {
            if (++leaving[run.run.value] == run.holders && run.counts.pins > 0 && !refusal)
                refusal = Refusal{RefusalKind::kPinned, 0, run.counts.pins};
        });
    return refusal;
}

std::optional<Refusal> check_images(const ContextState& state, std::span<const CheckpointHandle> checkpoints) {
    if (!state.stores.has_images()) return std::nullopt;
    std::unordered_map<std::uint64_t, std::int32_t> leaving;
    for (const CheckpointHandle handle : checkpoints) {
        const ImageId id = state.owners.find(handle).value()->image;
        const StateImage& image = *state.stores.images().find(id).value();
        if (++leaving[id.value] == image.references && image.pins > 0)
            return Refusal{RefusalKind::kPinned, 0, image.pins};
    }
    return std::nullopt;
}

// Releases what can be released and leaves the rest in `parts`.
void try_release(ContextState& state, Condemned& parts) {
    if (parts.kv != SpaceId{} && state.stores.kv().release(parts.kv)) parts.kv = {};
    if (parts.image != ImageId{} && state.stores.images().release(parts.image)) parts.image = {};
}

}  // namespace

std::optional<Refusal> check_removal(const ContextState& state, std::span<const CheckpointHandle> checkpoints) {
    for (const CheckpointHandle handle : checkpoints)
        if (const auto copies = state.owners.find(handle).value()->open_copies; copies > 0)
            return Refusal{RefusalKind::kCopyInFlight, 0, copies};
    if (const auto refusal = check_pages(state, checkpoints)) return refusal;
    return check_images(state, checkpoints);
}

Result<Nothing, Refusal> delete_checkpoint(ContextState& state, CheckpointHandle checkpoint) {
    if (const auto refusal = state.check_no_transaction()) return *refusal;
    if (const auto found = state.owners.find(checkpoint); !found) return found.error();
    if (const auto refusal = check_removal(state, {&checkpoint, 1})) return *refusal;
    const CommitScope commit;
    discard_checkpoint(state, checkpoint);
    release_condemned(state);
    ++state.resource_revision;
    return Nothing{};
}

Result<Nothing, Refusal> release_owner(ContextState& state, OwnerHandle owner) {
    if (const auto refusal = state.check_no_transaction()) return *refusal;
    const auto found = state.owners.find(owner);
    if (!found) return found.error();
    if (found.value()->role == OwnerRole::kActive) return Refusal{RefusalKind::kActive, 0, 1};
    const std::vector<CheckpointHandle> checkpoints = found.value()->checkpoints;
    if (const auto refusal = check_removal(state, checkpoints)) return *refusal;
    const CommitScope commit;
    for (const CheckpointHandle checkpoint : checkpoints) discard_checkpoint(state, checkpoint);
    release_condemned(state);
    ++state.resource_revision;
    return Nothing{};
}

void discard_checkpoint(ContextState& state, CheckpointHandle handle) {
    const Checkpoint checkpoint = state.owners.remove(handle);
    NINFER_ASSERT_EQ(checkpoint.open_copies, 0);
    release_ledger(state, checkpoint.ledger);
    release_or_condemn(state, {checkpoint.kv, checkpoint.image});
}

void release_ledger(ContextState& state, LedgerId ledger) {
    const auto released = state.stores.ledgers().release(ledger);
    NINFER_ASSERT(released.has_value(), "a ledger is gone before its user");
}

void release_or_condemn(ContextState& state, Condemned parts) {
    try_release(state, parts);
    if (parts.kv != SpaceId{} || parts.image != ImageId{}) state.condemned.push_back(parts);
}

void release_source(ContextState& state, Takeover& takeover) {
    if (!takeover.holds_source()) return;
    release_or_condemn(state, {std::exchange(takeover.kv, {}), {}});
    release_ledger(state, std::exchange(takeover.ledger, {}));
}

bool release_condemned(ContextState& state) {
    bool released = false;
    for (Condemned& parts : state.condemned) {
        const Condemned before = parts;
        try_release(state, parts);
        released = released || before.kv != parts.kv || before.image != parts.image;
    }
    std::erase_if(state.condemned,
                  [](const Condemned& parts) { return parts.kv == SpaceId{} && parts.image == ImageId{}; });
    return released;
}

}  // namespace ninfer
