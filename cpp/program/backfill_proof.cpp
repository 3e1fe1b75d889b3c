#include "cpp/program/backfill_proof.h"

#include <algorithm>
#include <unordered_set>

#include "cpp/state/page_count.h"

namespace ninfer {

namespace {

// Device pages and lanes of all that remain when the donors have finished and the cache is released.
class Remaining {
   public:
    explicit Remaining(const ContextState& state) : state_(state) {}

    void add_sequence(const Sequence& sequence) {
        ++lanes_;
        pages_ += state_.stores.kv().find(sequence.kv).value()->reserved;
        add_space(sequence.kv);
        if (sequence.takeover.holds_source()) add_space(sequence.takeover.kv);
        add_owner(sequence.owner);
    }
    // Its checkpoints stay with all their pages.
    void add_owner(OwnerHandle owner) {
        for (const CheckpointHandle checkpoint : state_.owners.find(owner).value()->checkpoints)
            add_space(state_.owners.find(checkpoint).value()->kv);
    }
    // What nobody wants, but an open copy still holds, may stay too, and keep its lane.
    void add_condemned() {
        lanes_ += state_.lanes_taken() - state_.sequences.lanes_open();
        for (const Condemned& condemned : state_.condemned)
            if (condemned.kv != SpaceId{}) add_space(condemned.kv);
    }
    std::int64_t pages() const noexcept { return pages_; }
    std::int64_t lanes() const noexcept { return lanes_; }

   private:
    // Each run once, whoever has it.
    void add_space(SpaceId space) {
        state_.stores.kv().for_each_run(space, [&](const RunFacts& run) {
            if (seen_.insert(run.run.value).second) pages_ += run.counts.on_device;
        });
    }

    const ContextState& state_;
    std::unordered_set<std::int32_t> seen_;
    std::int64_t pages_ = 0;
    std::int64_t lanes_ = 0;
};

std::optional<Refusal> check_question(const ContextState& state, const BackfillQuestion& question) {
    if (const auto refusal = state.check_no_transaction()) return refusal;
    for (const SequenceHandle donor : question.donors)
        if (const auto found = state.sequences.find(donor); !found) return found.error();
    for (const OwnerHandle owner : question.protected_owners)
        if (const auto found = state.owners.find(owner); !found) return found.error();
    for (const SequenceRequest* request : {&question.head, &question.borrower})
        if (request->tokens > state.max_context)
            return Refusal{RefusalKind::kOverContext, request->tokens, state.max_context};
    return std::nullopt;
}

// Without a source: the most that a sequence ever holds, whatever it shares.
std::int64_t pages_alone(const SequenceRequest& request) { return pages_of(request.tokens) + request.captures; }

}  // namespace

Result<BackfillProof, Refusal> prove_backfill(const ContextState& state, const BackfillQuestion& question) {
    if (const auto refusal = check_question(state, question)) return *refusal;
    Remaining remaining(state);
    state.sequences.for_each([&](SequenceHandle handle, const Sequence& sequence) {
        if (std::ranges::find(question.donors, handle) == question.donors.end()) remaining.add_sequence(sequence);
    });
    for (const OwnerHandle owner : question.protected_owners) remaining.add_owner(owner);
    remaining.add_condemned();
    BackfillProof proof;
    proof.revision = state.resource_revision;
    proof.pages_needed = remaining.pages() + pages_alone(question.borrower) + pages_alone(question.head);
    proof.pages_total = state.stores.kv().device().pages_total();
    proof.lanes_needed = remaining.lanes() + 2;
    if (proof.lanes_needed > state.sequences.lanes())
        return Refusal{RefusalKind::kNoLane, proof.lanes_needed, state.sequences.lanes()};
    if (proof.pages_needed > proof.pages_total)
        return Refusal{RefusalKind::kNoPages, proof.pages_needed, proof.pages_total};
    return proof;
}

}  // namespace ninfer
