#include "cpp/program/context_state.h"

#include <algorithm>
#include <unordered_map>

#include "cpp/program/checkpoint_placement.h"
#include "cpp/program/context_transaction.h"
#include "cpp/program/copy_polling.h"

namespace ninfer {

namespace {

// How often each thing of the stores is used, counted over all users.
struct Uses {
    std::unordered_map<std::uint64_t, std::int32_t> spaces;
    std::unordered_map<std::uint64_t, std::int32_t> images;
    std::int64_t ledgers = 0;

    void add(SpaceId kv, ImageId image) {
        if (kv != SpaceId{}) ++spaces[kv.value];
        if (image != ImageId{}) ++images[image.value];
    }
};

Uses count_uses(const ContextState& state) {
    Uses uses;
    state.sequences.for_each([&](SequenceHandle, const Sequence& sequence) {
        uses.add(sequence.kv, sequence.image);
        uses.add(sequence.takeover.kv, {});
        uses.ledgers += sequence.takeover.holds_source() ? 2 : 1;
    });
    state.owners.for_each_checkpoint([&](CheckpointHandle, const Checkpoint& checkpoint) {
        uses.add(checkpoint.kv, checkpoint.image);
        ++uses.ledgers;
    });
    for (const Condemned& condemned : state.condemned) uses.add(condemned.kv, condemned.image);
    if (state.transaction != nullptr) uses.add(state.transaction->running->kv(), state.transaction->running->image());
    return uses;
}

void check_sequences(const ContextState& state) {
    state.sequences.for_each([&](SequenceHandle handle, const Sequence& sequence) {
        NINFER_ASSERT_LE(sequence.computed, sequence.length);
        NINFER_ASSERT_LE(sequence.length, sequence.reserved);
        NINFER_ASSERT_EQ(state.stores.ledgers().length(sequence.ledger).value(), sequence.length);
        NINFER_ASSERT_EQ(state.stores.kv().facts(sequence.kv).value().frontier, sequence.computed);
        const Owner& owner = *state.owners.find(sequence.owner).value();
        NINFER_ASSERT(owner.role == OwnerRole::kActive, "a sequence's owner is not active");
        if (sequence.takeover.holds_source()) {
            NINFER_ASSERT(state.stores.kv().find(sequence.kv).value()->unsettled(), "a source is held for nobody");
            NINFER_ASSERT_EQ(sequence.computed, sequence.takeover.start);
        }
        const auto of = [&](CopyPurpose purpose) {
            return std::count_if(state.jobs.begin(), state.jobs.end(),
                                 [&](const CopyJob& job) { return job.purpose == purpose && job.sequence == handle; });
        };
        NINFER_ASSERT_EQ(sequence.waits, of(CopyPurpose::kSettling));
        NINFER_ASSERT_EQ(sequence.snapshots, of(CopyPurpose::kSnapshot));
    });
}

void check_checkpoints(const ContextState& state) {
    state.owners.for_each_checkpoint([&](CheckpointHandle handle, const Checkpoint& checkpoint) {
        NINFER_ASSERT_EQ(state.stores.ledgers().length(checkpoint.ledger).value(), checkpoint.frontier);
        NINFER_ASSERT_EQ(state.stores.kv().facts(checkpoint.kv).value().frontier, checkpoint.frontier);
        NINFER_ASSERT_EQ(is_valid(state, checkpoint), !checkpoint.awaits_image);
        const bool needs_image = state.stores.has_images() && !checkpoint.awaits_image;
        NINFER_ASSERT_EQ(checkpoint.image != ImageId{}, needs_image);
        NINFER_ASSERT_EQ(checkpoint.open_copies,
                         std::count_if(state.jobs.begin(), state.jobs.end(),
                                       [&](const CopyJob& job) { return job.checkpoint == handle; }));
    });
}

}  // namespace

ContextState::~ContextState() {
    drain_transaction(*this);
    drain_copies(*this);
}

std::int64_t ContextState::lanes_taken() const {
    const auto ends = [&](const Condemned& item) {
        return item.image != ImageId{} && stores.images().find(item.image).value()->active;
    };
    return sequences.lanes_open() + std::count_if(condemned.begin(), condemned.end(), ends);
}

std::optional<Refusal> ContextState::check_lane() const {
    if (lanes_taken() < sequences.lanes()) return std::nullopt;
    return Refusal{RefusalKind::kNoLane, sequences.lanes() + 1, sequences.lanes()};
}

std::optional<Refusal> ContextState::check_no_transaction() const {
    if (transaction == nullptr) return std::nullopt;
    return Refusal{RefusalKind::kTransactionOpen, 0, 1};
}

void ContextState::note_change() {
    if (transaction != nullptr)
        transaction->changed_besides = true;
    else
        ++resource_revision;
}

std::optional<Refusal> ContextState::not_ready(const Sequence& sequence) const {
    if (const auto refusal = sequence.not_ready()) return refusal;
    if (stores.has_images() && stores.images().find(sequence.image).value()->copying)
        return Refusal{RefusalKind::kCopyInFlight, 0, 1};
    return std::nullopt;
}

void ContextState::check_invariants() const {
    stores.check_invariants();
    if (stores.has_images()) {
        const bool begins = transaction != nullptr && transaction->running->image() != ImageId{};
        NINFER_ASSERT_EQ(stores.images().active_slots_used(), lanes_taken() + (begins ? 1 : 0));
    }
    owners.check_invariants();
    const std::int64_t copies = transaction != nullptr ? transaction->running->open_copies() : 0;
    NINFER_ASSERT_EQ(std::ssize(jobs) + copies, stores.copies().open_copies());
    check_sequences(*this);
    check_checkpoints(*this);
    Uses uses = count_uses(*this);
    NINFER_ASSERT_EQ(uses.ledgers, stores.ledgers().ledger_count());
    stores.kv().for_each_space([&](SpaceId kv, const AddressSpace&) {
        NINFER_ASSERT_EQ(uses.spaces[kv.value], 1);
        uses.spaces.erase(kv.value);
    });
    NINFER_ASSERT_EQ(uses.spaces.size(), 0);
    if (stores.has_images())
        stores.images().for_each([&](ImageId image, const StateImage& item) {
            NINFER_ASSERT_EQ(uses.images[image.value], item.references);
            uses.images.erase(image.value);
        });
    NINFER_ASSERT_EQ(uses.images.size(), 0);
}

std::uint64_t ContextState::fingerprint() const {
    Fingerprint fingerprint;
    fingerprint.add(stores.fingerprint());
    sequences.add_to(fingerprint);
    owners.add_to(fingerprint);
    for (const CopyJob& job : jobs)
        for (const std::uint64_t value :
             {job.copy.value, static_cast<std::uint64_t>(job.purpose), job.sequence.value, job.checkpoint.value})
            fingerprint.add(value);
    for (const Condemned& item : condemned) {
        fingerprint.add(item.kv.value);
        fingerprint.add(item.image.value);
    }
    fingerprint.add(resource_revision);
    if (transaction != nullptr) {
        fingerprint.add(transaction->running->phase());
        fingerprint.add(transaction->running->round());
        for (const CheckpointHandle checkpoint : transaction->checkpoints) fingerprint.add(checkpoint.value);
    }
    return fingerprint.value();
}

std::size_t ContextState::bookkeeping_bytes() const {
    return stores.bookkeeping_bytes() + jobs.capacity() * sizeof(CopyJob) + condemned.capacity() * sizeof(Condemned);
}

}  // namespace ninfer
