// Who may overtake the head of the queue: only who never makes it wait longer for memory.

#include "cpp/program/backfill_proof.h"
#include "tests/cpp/program/planning_fixture.h"

namespace ninfer {
namespace {

using testing_support::PlanningTest;

class BackfillProofTest : public PlanningTest {
   protected:
    BackfillQuestion question(std::int64_t head, std::int64_t borrower) const {
        return {.head = {.tokens = head}, .borrower = {.tokens = borrower}, .donors = donors_, .protected_owners = {}};
    }
    std::vector<SequenceHandle> donors_;
};

TEST_F(BackfillProofTest, TheHeadFitsBesideTheBorrowerWhenDonorsHaveFinished) {
    build({.pages = 16, .lanes = 4});
    world().endpoint(world().make_tokens(200));  // cache is no obstacle
    donors_ = {world().open(64 * 6)};
    const auto other = world().open(64 * 3);
    world().compute(other, world().make_tokens(70));
    // 16 - 3 of the other one: 13 for the head and the borrower together.
    const auto proof = must(prove_backfill(state(), question(64 * 10, 64 * 3)));
    EXPECT_TRUE(proof.holds(state()));
    EXPECT_EQ(proof.pages_needed, 16);
    expect_refused([&] { return prove_backfill(state(), question(64 * 10, 64 * 3 + 1)); }, RefusalKind::kNoPages);
    donors_.clear();
    expect_refused([&] { return prove_backfill(state(), question(64 * 10, 64 * 3)); }, RefusalKind::kNoPages);
    world().compute(other, world().make_tokens(64 * 3 - 70));
    EXPECT_TRUE(proof.holds(state())) << "growth inside a reservation changes nothing";
    close(other);
    EXPECT_FALSE(proof.holds(state()));
}

TEST_F(BackfillProofTest, WhatIsProtectedStaysAndCountsOnce) {
    build({.pages = 16, .lanes = 3});
    const auto base = world().endpoint(world().make_tokens(256));       // 4 pages
    const auto longer = world().extend(base, world().make_tokens(64));  // 1 more
    const std::array owners{world().owner_of(base), world().owner_of(longer)};
    auto asked = question(64 * 8, 64 * 3);
    asked.protected_owners = owners;
    EXPECT_EQ(must(prove_backfill(state(), asked)).pages_needed, 16);
    asked.borrower.captures = 1;
    expect_refused([&] { return prove_backfill(state(), asked); }, RefusalKind::kNoPages);
    // A sequence that shares the protected pages takes only its own.
    const auto fork = must(open_from(state(), {longer}, {.tokens = 64 * 6}));
    asked.borrower = {.tokens = 64 * 2};
    EXPECT_EQ(must(prove_backfill(state(), asked)).pages_needed, 16);
    close(fork);
}

TEST_F(BackfillProofTest, LanesAndContextCountToo) {
    build({.pages = 16, .lanes = 2, .max_context = 500});
    const auto active = world().open(64);
    expect_refused([&] { return prove_backfill(state(), question(64, 64)); }, RefusalKind::kNoLane);
    donors_ = {active};
    EXPECT_EQ(must(prove_backfill(state(), question(64, 64))).lanes_needed, 2);
    expect_refused([&] { return prove_backfill(state(), question(501, 64)); }, RefusalKind::kOverContext);
    close(active);
    expect_refused([&] { return prove_backfill(state(), question(64, 64)); }, RefusalKind::kStaleHandle);
}

// A space that nobody uses any more, but whose pages a drained copy still writes, keeps what it was promised.
TEST_F(BackfillProofTest, WhatIsCondemnedKeepsItsReservation) {
    build({.pages = 16, .lanes = 4});
    const auto base = world().endpoint(world().make_tokens(100));
    close(must(open_from(state(), {base}, {.tokens = 64 * 6})));  // its tail is on the way
    ASSERT_FALSE(state().condemned.empty());
    ASSERT_EQ(world().used().device_pages, 7);  // two of the base, of which one is shared
    // The page that the copy reads may not go either.
    EXPECT_EQ(must(prove_backfill(state(), question(64 * 7, 64 * 2))).pages_needed, 16);
    expect_refused([&] { return prove_backfill(state(), question(64 * 7, 64 * 2 + 1)); }, RefusalKind::kNoPages);
    world().settle();
    EXPECT_EQ(must(prove_backfill(state(), question(64 * 13, 64 * 3))).pages_needed, 16);
}

// The same of the image of a closed sequence that a cancelled snapshot still reads.
TEST_F(BackfillProofTest, ACondemnedImageKeepsItsLane) {
    build({.pages = 16, .lanes = 2});
    const auto sequence = world().open(64);
    world().compute(sequence, world().make_tokens(64));
    must(capture(state(), sequence, {.image_tier = Tier::kHost}));
    donors_ = {sequence};
    expect_refused([&] { return prove_backfill(state(), question(64, 64)); }, RefusalKind::kNoLane);
    close(sequence);
    donors_ = {};
    expect_refused([&] { return prove_backfill(state(), question(64, 64)); }, RefusalKind::kNoLane);
    world().settle();
    EXPECT_EQ(must(prove_backfill(state(), question(64, 64))).lanes_needed, 2);
}

// A copy that begins moves no revision, and takes and pins what the proof has counted as released.
TEST_F(BackfillProofTest, ItDoesNotOutliveTheBeginningOfACopy) {
    build({.pages = 16, .lanes = 4, .checkpoint_slots = 4, .host_pages = 12});
    const auto idle = world().endpoint(world().make_tokens(256));
    const auto sequence = world().open(64 * 3, 1);
    world().compute(sequence, world().make_tokens(128));
    donors_ = {sequence};
    const auto expect_ended_by = [&](auto&& begin_copy) {
        const auto proof = must(prove_backfill(state(), question(64 * 13, 64 * 3)));
        EXPECT_TRUE(proof.holds(state()));
        must(begin_copy());
        EXPECT_EQ(proof.revision, state().resource_revision);
        EXPECT_FALSE(proof.holds(state()));
        expect_refused([&] { return prove_backfill(state(), question(64 * 13, 64 * 3)); }, RefusalKind::kNoPages);
        world().settle();
        EXPECT_FALSE(proof.holds(state()));
    };
    expect_ended_by([&] { return start_copy(state(), idle, Tier::kHost); });
    expect_ended_by([&] { return capture(state(), sequence, {.image_tier = Tier::kHost}); });
    close(sequence);
}

// Cache that cannot be released is no cache: what open copies read or write, and their destinations, drained ones too.
TEST_F(BackfillProofTest, CopiesHoldWhatTheyUse) {
    build({.pages = 16, .lanes = 4, .host_pages = 12});
    const auto idle = world().endpoint(world().make_tokens(256));
    must(start_copy(state(), idle, Tier::kHost));
    EXPECT_EQ(must(prove_backfill(state(), question(64, 64))).pages_needed, 6);
    world().settle();
    EXPECT_EQ(must(prove_backfill(state(), question(64, 64))).pages_needed, 2);
    must(drop(state(), idle, Tier::kDevice));
    must(start_copy(state(), idle, Tier::kDevice));
    EXPECT_EQ(must(prove_backfill(state(), question(64, 64))).pages_needed, 6);
    must(cancel_copies(state(), idle));
    EXPECT_EQ(must(prove_backfill(state(), question(64, 64))).pages_needed, 6);
    expect_refused([&] { return prove_backfill(state(), question(64 * 12, 64)); }, RefusalKind::kNoPages);
    world().settle();
    EXPECT_EQ(must(prove_backfill(state(), question(64, 64))).pages_needed, 2);
}

}  // namespace
}  // namespace ninfer
