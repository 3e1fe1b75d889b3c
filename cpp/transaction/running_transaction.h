#pragma once

// Carries out one sealed plan. At most one runs at a time.
//
// Life of a transaction:
// 1. started: revision, handles, every stage's capacity, pins and the place of everything in the plan are checked against
//    the stores; a plan that does not hold any more is refused, and nothing has changed. From now on source, victims and
//    order are fixed;
// 2. releases: holdings go or are cut, redundant replicas that nobody wants are dropped. These are not undone;
// 3. rounds of copies: demotions, restores of the source's pages, the new sequence's tail and image. Each reserves its
//    destinations, copies, verifies epoch and coverage, publishes, and then ends what was replaced. A round without copies
//    is over at once;
// 4. committed: what is continued in place has moved, a consumed source is gone, the new sequence is complete; or
//    cancelled (before any phase but the last), or a copy has failed: copies of the open round are given back when the engine
//    has let go of them, the source is as valid as before, the new sequence is gone, and what was published before
//    stays (no copy goes backwards).
// 5. ended: the result is told; only now it may be destroyed.
//
// While it runs, others take nothing from the stores: active sequences go on inside their own reservations.
// Whoever polls ReplicaCopies moves the bytes; advance only looks at what has arrived. The stages' projected amounts are
// asserted after each phase, and the measured peak is noted at every mutation.

#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/transaction/resource_plan.h"
#include "cpp/transaction/transaction_phase.h"
#include "cpp/transaction/transaction_result.h"

namespace ninfer {

class RunningTransaction {
   public:
    // Uses the plan up, whatever comes of it. kStaleRevision, kStaleHandle, kActive, and as ResourcePlan::seal.
    static Result<std::unique_ptr<RunningTransaction>, Refusal> start(ResourcePlan plan, const StateStores& stores,
                                                                      std::uint64_t revision);
    // It must have ended.
    ~RunningTransaction();
    RunningTransaction(const RunningTransaction&) = delete;
    RunningTransaction& operator=(const RunningTransaction&) = delete;

    // One phase; while copies are open, it looks whether they have ended.
    void step();
    // Whether the last step has found that a copy has to end first.
    bool waits() const noexcept { return waits_; }
    // Steps until it has ended or waits.
    void advance();
    // Takes effect at the next step. False if it has ended already, or is being aborted.
    bool cancel();

    TransactionPhase phase() const noexcept { return phase_; }
    CopyRound round() const noexcept { return round_; }
    // The last stage that has been reached; while it is aborted, nothing that means anything.
    ResourceStage stage() const noexcept;
    bool ended() const noexcept { return has_ended(phase_); }
    const ResourceProjection& projection() const noexcept { return projection_; }
    std::int64_t open_copies() const noexcept { return std::ssize(copies_); }
    // As they are now, placements apart; one per holding of the plan.
    std::span<const HoldingResult> holdings() const noexcept { return holdings_; }
    // Of the new sequence, as far as it is there.
    SpaceId kv() const noexcept { return kv_; }
    ImageId image() const noexcept { return image_; }
    ResourceAxes measured_peak() const noexcept { return peak_; }

    // It must have ended. Costs the runs of all holdings.
    TransactionResult result() const;

    // Called after every mutation of the stores; outlives the transaction. For tests.
    using Probe = void (*)(void* context);
    void watch(Probe probe, void* context);

   private:
    RunningTransaction(ResourcePlan plan, const StateStores& stores, const ResourceProjection& projection);

    void move_to(TransactionPhase next);
    void note();
    void did(Result<Nothing, Refusal> done);
    HoldingResult& source();

    void release();
    void release_holding(std::int32_t index);
    void shorten(const HoldingCut& cut);
    void prepare();
    void prepare_kv();
    void prepare_image();
    void begin_copy(Result<CopyId, Refusal> copy);
    void look();
    void publish();
    void end_round();
    void commit();
    void consume_kv();
    void consume_image();
    void abort(TransactionEnd why);
    void drain();

    ResourcePlan plan_;
    StateStores stores_;
    ResourceProjection projection_;
    TransactionPhase phase_ = TransactionPhase::kHostReleases;
    CopyRound round_ = CopyRound::kDemotion;
    TransactionEnd end_ = TransactionEnd::kCommitted;
    bool cancelled_ = false;
    bool waits_ = false;
    bool changed_ = false;
    std::vector<HoldingResult> holdings_;  // as they are now; placements are filled in by result()
    std::vector<CopyId> copies_;           // of the round
    SpaceId kv_;
    ImageId image_;
    ResourceAxes peak_;
    Probe probe_ = nullptr;
    void* probe_context_ = nullptr;
};

}  // namespace ninfer
