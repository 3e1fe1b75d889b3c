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
    // Most copies that one step begins, looks at, publishes or gives back: well below a millisecond. A larger round takes
    // several steps in one phase, and each of them is a boundary too: what was published stays, the rest is given back.
    static constexpr std::size_t kCopiesPerStep = 256;

    // Uses the plan up, whatever comes of it. kStaleRevision, kStaleHandle, kActive, and as ResourcePlan::seal.
    static Result<std::unique_ptr<RunningTransaction>, Refusal> start(ResourcePlan plan, const StateStores& stores,
                                                                      std::uint64_t revision);
    // It must have ended.
    ~RunningTransaction();
    RunningTransaction(const RunningTransaction&) = delete;
    RunningTransaction& operator=(const RunningTransaction&) = delete;

    // One phase, or a part of it if the round has many copies; while they are open, it looks whether they have ended.
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
    std::int64_t open_copies() const noexcept { return std::ssize(copies_) - static_cast<std::int64_t>(published_); }
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
    bool prepare();
    bool begin_copies(std::span<const PageId> pages, std::span<const ImageId> images, Tier destination);
    void prepare_kv();
    void prepare_image();
    void begin_copy(Result<CopyId, Refusal> copy);
    void look();
    bool publish();
    void leave_device(std::size_t index);
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
    std::size_t looked_ = 0;               // the first of them that is not known to be done
    std::size_t published_ = 0;            // as many of them have been, and their handles are gone
    std::size_t left_device_ = 0;          // as many of what was demoted have
    SpaceId kv_;
    ImageId image_;
    ResourceAxes peak_;
    Probe probe_ = nullptr;
    void* probe_context_ = nullptr;
};

}  // namespace ninfer
