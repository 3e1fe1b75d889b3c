#include "cpp/program/backfill_proof.h"

#include <algorithm>
#include <unordered_map>

#include "cpp/program/protected_owners.h"
#include "cpp/state/page_count.h"

namespace ninfer {

namespace {

// What goes when the donors have finished and the cache is released.
class Leaving {
   public:
    explicit Leaving(const ContextState& state) : state_(state) {}

    void add_sequence(const Sequence& donor) {
        pages_ += state_.stores.kv().find(donor.kv).value()->reserved;
        add_space(donor.kv);
        if (donor.takeover.holds_source()) add_space(donor.takeover.kv);
        const bool pinned = state_.stores.has_images() && state_.stores.images().find(donor.image).value()->pins > 0;
        lanes_ += pinned ? 0 : 1;
    }
    void add_owner(const Owner& owner) {
        for (const CheckpointHandle checkpoint : owner.checkpoints)
            add_space(state_.owners.find(checkpoint).value()->kv);
    }
    std::int64_t pages() const noexcept { return pages_; }
    std::int64_t lanes() const noexcept { return lanes_; }

   private:
    // A run goes with the last that has it.
    void add_space(SpaceId space) {
        state_.stores.kv().for_each_run(space, [&](const RunFacts& run) {
            if (++seen_[run.run.value] == run.holders) pages_ += pages_to_go(run);
        });
    }
    std::int64_t pages_to_go(const RunFacts& run) const {
        if (run.counts.pins == 0) return run.counts.on_device;
        std::int64_t pages = 0;
        state_.stores.kv().for_each_page_of(
            run.run, [&](PageId, const LogicalPage& page) { pages += page.on_device() && page.pins == 0 ? 1 : 0; });
        return pages;
    }

    const ContextState& state_;
    std::unordered_map<std::int32_t, std::int32_t> seen_;  // [run] by how many that go
    std::int64_t pages_ = 0;
    std::int64_t lanes_ = 0;
};

template <typename Handle>
bool contains(std::span<const Handle> handles, Handle handle) {
    return std::ranges::find(handles, handle) != handles.end();
}

Leaving what_leaves(const ContextState& state, const BackfillQuestion& question) {
    Leaving leaving(state);
    std::vector<OwnerHandle> active;  // of sequences that stay
    state.sequences.for_each([&](SequenceHandle handle, const Sequence& sequence) {
        if (contains(question.donors, handle))
            leaving.add_sequence(sequence);
        else
            active.push_back(sequence.owner);
    });
    state.owners.for_each_owner([&](OwnerHandle handle, const Owner& owner) {
        const bool stays = contains<OwnerHandle>(active, handle) || contains(question.protected_owners, handle) ||
                           state.owners.has_open_copies(owner);
        if (!stays) leaving.add_owner(owner);
    });
    return leaving;
}

std::optional<Refusal> check_question(const ContextState& state, const BackfillQuestion& question) {
    if (const auto refusal = state.check_no_transaction()) return refusal;
    for (const SequenceHandle donor : question.donors)
        if (const auto found = state.sequences.find(donor); !found) return found.error();
    if (const auto refusal = check_owners(state, question.protected_owners)) return refusal;
    for (const SequenceRequest* request : {&question.head, &question.borrower})
        if (request->tokens > state.max_context)
            return Refusal{RefusalKind::kOverContext, request->tokens, state.max_context};
    return std::nullopt;
}

std::optional<Refusal> refusal_of(const ContextState& state, const BackfillProof& proof) {
    const std::int64_t lanes = state.sequences.lanes();
    if (proof.lanes_needed > lanes) return Refusal{RefusalKind::kNoLane, proof.lanes_needed, lanes};
    if (proof.pages_needed > proof.pages_total)
        return Refusal{RefusalKind::kNoPages, proof.pages_needed, proof.pages_total};
    return std::nullopt;
}

// Without a source: the most that a sequence ever holds, whatever it shares.
std::int64_t pages_alone(const SequenceRequest& request) { return pages_of(request.tokens) + request.captures; }

}  // namespace

Result<BackfillProof, Refusal> prove_backfill(const ContextState& state, const BackfillQuestion& question) {
    if (const auto refusal = check_question(state, question)) return *refusal;
    const Leaving leaving = what_leaves(state, question);
    const ResourceAxes used = axes_of(state.stores.copies().used());
    BackfillProof proof;
    proof.revision = state.resource_revision;
    proof.copies_begun = state.copies_begun;
    proof.pages_needed =
        used.device_pages - leaving.pages() + pages_alone(question.borrower) + pages_alone(question.head);
    proof.pages_total = state.stores.kv().device().pages_total();
    proof.lanes_needed = state.lanes_taken() - leaving.lanes() + 2;
    if (const auto refusal = refusal_of(state, proof)) return *refusal;
    return proof;
}

}  // namespace ninfer
