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

}  // namespace
}  // namespace ninfer
