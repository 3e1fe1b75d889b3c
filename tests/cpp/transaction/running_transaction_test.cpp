// A plan from its seal to its end: every phase, every cancellation, every failing copy, and plans that do not hold any more.

#include "tests/cpp/transaction/transaction_fixture.h"

namespace ninfer {
namespace {

using testing_support::KnownHolding;
using testing_support::KnownSequence;
using testing_support::StoresWorld;
using Phase = TransactionPhase;

constexpr std::int64_t kPageBlocks = StoresWorld::kPageBlocks;
constexpr std::int64_t kImageBlocks = StoresWorld::kImageBlocks;

// One target that needs everything: holding 0 is the source, on Host but for its first page; holding 1 goes; holding 2 is
// demoted, image and all; holding 3 has a redundant Host replica. The source is retained or consumed with an alias left,
// so that its tail is copied.
class RunningTransactionTest : public testing_support::TransactionTest {
   protected:
    static constexpr std::int64_t kFrontier = 130;

    void build_pressure() {
        build({.pages = 10, .active_slots = 2, .checkpoint_slots = 4, .host_blocks = 40});
        const KnownHolding source = world().make(kFrontier);
        for (const std::int64_t page : {1, 2}) {
            world().page_to_host(world().page_at(source.holding, page));
            world().page_off_device(world().page_at(source.holding, page));
        }
        world().image_to_host(source.holding);
        world().image_off_device(source.holding);
        const KnownHolding goes = world().make(64);
        const KnownHolding demoted = world().make(100);
        const KnownHolding redundant = world().make(64);
        world().page_to_host(world().page_at(redundant.holding, 0));
        read({source, goes, demoted, redundant, world().alias(source)});
        outcomes_[1].survives = false;
        outcomes_[2].device_pages = 0;
        outcomes_[2].image = ImageOutcome::kHostOnly;
        outcomes_[3].drops_host = true;
    }
    static ResourceNeed need(bool consumes) { return from_source(0, kFrontier, 5, consumes); }

    // The phases of that target, as `step` goes through them.
    static std::vector<std::pair<Phase, CopyRound>> all_phases() {
        std::vector<std::pair<Phase, CopyRound>> phases = {{Phase::kHostReleases, CopyRound::kDemotion}};
        for (const CopyRound round : {CopyRound::kDemotion, CopyRound::kRestore, CopyRound::kActivation})
            for (const Phase phase : {Phase::kCopyPreparation, Phase::kCopiesInFlight, Phase::kCopyPublication})
                phases.emplace_back(phase, round);
        return phases;
    }

    // After an abort: nothing is left of what was begun, the source is as valid as before, what had happened before the
    // open round stays, and the result says so.
    void expect_aborted(const RunningTransaction& running, TransactionEnd end, ResourceStage stage) {
        ASSERT_EQ(running.phase(), Phase::kAborted);
        const TransactionResult result = running.result();
        EXPECT_EQ(to_string(result.end), to_string(end));
        EXPECT_EQ(result.kv, SpaceId{});
        EXPECT_EQ(result.image, ImageId{});
        EXPECT_EQ(world().used(), running.projection().used_at(stage));
        EXPECT_EQ(result.used, world().used());
        EXPECT_EQ(world().copies.open_copies() + world().copies.draining_copies(), 0);
        EXPECT_EQ(world().engine.copies(), 0U);
        EXPECT_EQ(result.changed, stage != ResourceStage::kNow);
        const bool released = stage >= ResourceStage::kReleased;
        const bool is_demoted = stage >= ResourceStage::kDemoted;
        const bool is_restored = stage >= ResourceStage::kRestoring;
        EXPECT_EQ(result.holdings[0].placement, (HoldingPlacement{3, is_restored ? 3 : 1, 2, false, true}));
        EXPECT_EQ(result.holdings[1].removed, released);
        EXPECT_EQ(result.holdings[2].placement,
                  (HoldingPlacement{2, is_demoted ? 0 : 2, is_demoted ? 2 : 0, !is_demoted, is_demoted}));
        EXPECT_EQ(result.holdings[3].placement, (HoldingPlacement{1, 1, released ? 0 : 1, true, false}));
        expect_holdings(result);
        check_invariants();
    }
    // The stage that stays if the transaction is aborted in this phase of this round.
    static ResourceStage stage_that_stays(Phase phase, CopyRound round) {
        if (phase == Phase::kHostReleases) return ResourceStage::kNow;
        if (round == CopyRound::kDemotion) return ResourceStage::kReleased;
        return round == CopyRound::kRestore ? ResourceStage::kDemoted : ResourceStage::kRestoring;
    }
    // The rest of the target, in a new plan, is carried out as if nothing had been.
    void commit_the_rest(const RunningTransaction& aborted, bool consumes) {
        const TransactionResult result = aborted.result();
        std::vector<KnownHolding> left;
        for (std::size_t i = 0; i < known_.size(); ++i) {
            left.push_back(known_[i]);
            left.back().holding = result.holdings[i].holding;
        }
        const bool gone = result.holdings[1].removed;
        if (gone) left.erase(left.begin() + 1);
        read(left);
        if (!gone) outcomes_[1].survives = false;
        outcomes_[gone ? 1 : 2].device_pages = 0;
        commit(need(consumes));
    }
};

TEST(TransactionPhase, OnlyTheMovesOfTheTableAreLegal) {
    const std::vector<Phase> rising = {Phase::kHostReleases, Phase::kCopyPreparation, Phase::kCopiesInFlight,
                                       Phase::kCopyPublication, Phase::kCommitted};
    const std::vector<Phase> all = {Phase::kHostReleases,    Phase::kCopyPreparation, Phase::kCopiesInFlight,
                                    Phase::kCopyPublication, Phase::kCommitted,       Phase::kDraining,
                                    Phase::kAborted};
    for (const Phase from : all) {
        for (const Phase to : all) {
            bool legal = from == Phase::kDraining && to == Phase::kAborted;
            for (std::size_t i = 0; i + 1 < rising.size(); ++i)
                legal = legal || (from == rising[i] && to == rising[i + 1]);
            legal = legal || (from == Phase::kCopyPreparation && to == Phase::kCopyPublication);
            legal = legal || (from == Phase::kCopyPublication && to == Phase::kCopyPreparation);
            legal = legal || (to == Phase::kDraining && from != Phase::kCommitted && from != Phase::kAborted &&
                              from != Phase::kDraining);
            EXPECT_EQ(is_legal_move(from, to), legal) << to_string(from) << " to " << to_string(to);
        }
    }
}

TEST_F(RunningTransactionTest, EveryPhaseComesInOrder) {
    for (const bool consumes : {false, true}) {
        build_pressure();
        EXPECT_EQ(project(need(consumes)).to_host.operations, 3);
        EXPECT_EQ(project(need(consumes)).to_device.operations, 3);
        EXPECT_EQ(project(need(consumes)).within_device.operations, 1);
        const auto running = begin(need(consumes));
        for (const auto& [phase, round] : all_phases()) {
            EXPECT_EQ(to_string(running->phase()), to_string(phase));
            EXPECT_EQ(to_string(running->round()), to_string(round));
            step(*running);
        }
        EXPECT_EQ(running->phase(), Phase::kCommitted);
        const TransactionResult result = running->result();
        EXPECT_TRUE(result.changed);
        EXPECT_EQ(result.holdings[0].removed, consumes);
        EXPECT_TRUE(result.holdings[1].removed);
        EXPECT_EQ(result.holdings[1].holding, Holding{});
        expect_holdings(result);
        expect_sequence(result, need(consumes));
        EXPECT_FALSE(running->cancel());
    }
}

TEST_F(RunningTransactionTest, ItWaitsForItsCopiesAndForNothingElse) {
    build_pressure();
    const auto running = begin(need(false));
    for (const CopyRound round : {CopyRound::kDemotion, CopyRound::kRestore, CopyRound::kActivation}) {
        running->advance();
        EXPECT_EQ(running->phase(), Phase::kCopiesInFlight);
        EXPECT_EQ(running->round(), round);
        running->advance();
        EXPECT_EQ(running->phase(), Phase::kCopiesInFlight);
        world().engine.complete_all();
    }
    running->advance();
    EXPECT_EQ(running->phase(), Phase::kCommitted);
}

TEST_F(RunningTransactionTest, ActiveSequencesGoOnInsideTheirReservations) {
    build_pressure();
    KnownSequence active = world().open(3);
    read(known_);
    outcomes_[1].survives = false;
    outcomes_[2].device_pages = 0;
    const auto running = begin(need(false));
    std::int64_t computed = 0;
    while (!running->ended()) {
        step(*running);  // compares what is used, reservations included, with the projection
        world().compute(active, computed += 19);
        world().expect_shows(active);
    }
    EXPECT_GT(computed, 3 * 60);
    expect_holdings(running->result());
    expect_sequence(running->result(), need(false));
    world().expect_shows(active);
}

TEST_F(RunningTransactionTest, ATargetWithoutCopiesIsCommittedAtOnce) {
    build({});
    read({world().make(64), world().make(130)});
    outcomes_[0].survives = false;
    const auto running = begin(from_source(1, 130, 4, true));
    running->advance();
    EXPECT_EQ(running->phase(), Phase::kCommitted);
    const TransactionResult result = running->result();
    expect_sequence(result, from_source(1, 130, 4, true));
    EXPECT_TRUE(result.holdings[0].removed && result.holdings[1].removed);
}

TEST_F(RunningTransactionTest, ACancellationTakesEffectAtEveryPhase) {
    for (const bool consumes : {false, true}) {
        for (const auto& [phase, round] : all_phases()) {
            SCOPED_TRACE(std::string(to_string(phase)) + " of " + std::string(to_string(round)));
            build_pressure();
            const auto running = begin(need(consumes));
            while (running->phase() != phase || running->round() != round) step(*running);
            const std::uint64_t before = world().copies.fingerprint_of_all();
            EXPECT_TRUE(running->cancel());
            EXPECT_EQ(world().copies.fingerprint_of_all(), before);
            running->step();
            if (phase == Phase::kCopiesInFlight) {
                // The engine still writes the destinations: they are given back later.
                EXPECT_EQ(running->phase(), Phase::kDraining);
                EXPECT_FALSE(running->cancel());
                EXPECT_EQ(world().copies.fingerprint_of_all(), before);
                world().engine.complete_all();
                running->step();
            }
            expect_aborted(*running, TransactionEnd::kCancelled, stage_that_stays(phase, round));
            commit_the_rest(*running, consumes);
        }
    }
}

TEST_F(RunningTransactionTest, EveryCopyMayFail) {
    int failed = 0;
    for (const bool consumes : {false, true}) {
        for (const auto& [phase, round] : all_phases()) {
            if (phase != Phase::kCopiesInFlight) continue;
            const std::size_t copies = round == CopyRound::kDemotion ? 3 : 2;
            for (std::size_t index = 0; index < copies; ++index) {
                SCOPED_TRACE("copy " + std::to_string(index) + " of " + std::string(to_string(round)));
                build_pressure();
                const auto running = begin(need(consumes));
                while (running->phase() != phase || running->round() != round) step(*running);
                ASSERT_EQ(running->open_copies(), static_cast<std::int64_t>(copies));
                world().engine.fail_pending(index);
                running->advance();
                EXPECT_EQ(running->phase(), Phase::kDraining);  // the others are on their way
                world().engine.complete_all();
                running->advance();
                expect_aborted(*running, TransactionEnd::kCopyFailed, stage_that_stays(phase, round));
                commit_the_rest(*running, consumes);
                ++failed;
            }
        }
    }
    EXPECT_EQ(failed, 2 * 7);
}

// --- plans that do not hold any more ----------------------------------------------------------------------------------

class StalePlanTest : public RunningTransactionTest {
   protected:
    ResourcePlan seal() { return StoresWorld::must(ResourcePlan::seal(*projector_, outcomes_, need(true))); }
    void expect_refused(ResourcePlan plan, std::uint64_t revision, RefusalKind kind) {
        const std::uint64_t before = world().copies.fingerprint_of_all();
        const auto started = RunningTransaction::start(std::move(plan), world().stores(), revision);
        ASSERT_FALSE(started.has_value());
        EXPECT_EQ(to_string(started.error().kind), to_string(kind));
        EXPECT_EQ(world().copies.fingerprint_of_all(), before);
        check_invariants();
    }
};

TEST_F(StalePlanTest, OfAnotherRevision) {
    build_pressure();
    expect_refused(seal(), kRevision + 1, RefusalKind::kStaleRevision);
    expect_refused(seal(), kRevision - 1, RefusalKind::kStaleRevision);
}

TEST_F(StalePlanTest, OfAHoldingThatIsGone) {
    for (std::size_t gone = 0; gone < 5; ++gone) {
        build_pressure();
        ResourcePlan plan = seal();
        world().release(known_[gone].holding);
        expect_refused(std::move(plan), kRevision, RefusalKind::kStaleHandle);
        // The slot is used again: the generation tells.
        build_pressure();
        ResourcePlan reused = seal();
        world().release(known_[gone].holding);
        world().make(64);
        expect_refused(std::move(reused), kRevision, RefusalKind::kStaleHandle);
    }
}

TEST_F(StalePlanTest, OfAHoldingThatIsInUse) {
    build_pressure();
    ResourcePlan plan = seal();
    StoresWorld::must(world().pages.consume(known_[1].holding.kv, 1));
    expect_refused(std::move(plan), kRevision, RefusalKind::kStaleHandle);
}

TEST_F(StalePlanTest, WhoseCapacityIsTaken) {
    build_pressure();
    ResourcePlan plan = seal();
    world().open(4);
    expect_refused(std::move(plan), kRevision, RefusalKind::kNoPages);
    build_pressure();
    ResourcePlan slots = seal();
    world().open(0);
    world().open(0);
    expect_refused(std::move(slots), kRevision, RefusalKind::kNoImageSlots);
    build_pressure();
    ResourcePlan blocks = seal();
    StoresWorld::must(
        world().host.allocate(world().host.blocks_free() - 2 * kPageBlocks - kImageBlocks + kPageBlocks + 1));
    const auto started = RunningTransaction::start(std::move(blocks), world().stores(), kRevision);
    ASSERT_FALSE(started.has_value());
    EXPECT_EQ(to_string(started.error().kind), "no_host_blocks");
    world_.reset();  // blocks without an owner are no state to be checked
}

TEST_F(StalePlanTest, WhosePartsArePinnedOrElsewhere) {
    build_pressure();
    ResourcePlan pinned = seal();
    const CopyId copy =
        StoresWorld::must(world().copies.start_page(world().page_at(known_[2].holding, 0), Tier::kHost));
    expect_refused(std::move(pinned), kRevision, RefusalKind::kPinned);
    // What a later stage would find elsewhere.
    read(known_);
    world().complete(copy);
    build_pressure();
    ResourcePlan moved = seal();
    world().page_to_host(world().page_at(known_[2].holding, 0));
    expect_refused(std::move(moved), kRevision, RefusalKind::kStaleRevision);
    build_pressure();
    ResourcePlan restored = seal();
    world().complete(
        StoresWorld::must(world().copies.start_page(world().page_at(known_[0].holding, 1), Tier::kDevice)));
    expect_refused(std::move(restored), kRevision, RefusalKind::kStaleRevision);
    build_pressure();
    ResourcePlan shared = seal();
    world().alias(known_[1]);  // somebody else sees a victim's pages now: the same target leads elsewhere
    expect_refused(std::move(shared), kRevision, RefusalKind::kStaleRevision);
}

// The same amounts, but other pages.
TEST_F(StalePlanTest, WhosePagesHaveChangedPlaces) {
    build(kNoImages);
    const KnownHolding known = world().make(256);
    world().page_to_host(world().page_at(known.holding, 1));
    read({known});
    demote(0);
    ResourcePlan plan = StoresWorld::must(ResourcePlan::seal(*projector_, outcomes_, {}));
    StoresWorld::must(world().pages.drop(world().page_at(known.holding, 1), Tier::kHost));
    world().page_to_host(world().page_at(known.holding, 2));
    expect_refused(std::move(plan), kRevision, RefusalKind::kStaleRevision);
}

TEST_F(StalePlanTest, NothingIsReadFromTheDomainOnceItIsSealed) {
    build_pressure();
    const ResourceNeed consuming = need(true);
    ResourcePlan plan = seal();
    const std::vector<KnownHolding> known = known_;
    const auto running = StoresWorld::must(RunningTransaction::start(std::move(plan), world().stores(), kRevision));
    read({known[0]});
    known_ = known;
    while (!running->ended()) {
        world().engine.complete_all();
        running->step();
    }
    expect_holdings(running->result());
    expect_sequence(running->result(), consuming);
}

}  // namespace
}  // namespace ninfer
