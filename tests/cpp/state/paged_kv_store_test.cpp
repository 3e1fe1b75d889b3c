// Spaces by themselves: open, map, commit, release, drops, facts.

#include "tests/cpp/state/stores_fixture.h"

namespace ninfer {
namespace {

using testing_support::StoresTest;

constexpr std::int64_t kBoundaries[] = {0, 1, 63, 64, 65, 127, 128, 129};

using PagedKvStoreTest = StoresTest;

TEST_F(PagedKvStoreTest, PagesComeOutOfTheReservationAsTokensNeedThem) {
    for (const std::int64_t tokens : kBoundaries) {
        Tokens written;
        const SpaceId space = ok(pages_.open(4));
        EXPECT_EQ(copies_.used(), (UsedVector{.device_pages_reserved = 4}));
        compute(space, written, tokens);
        const std::int64_t pages = (tokens + 63) / 64;
        EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = pages, .device_pages_reserved = 4 - pages}));
        EXPECT_EQ(facts(space).frontier, tokens);
        EXPECT_EQ(facts(space).pages, pages);
        EXPECT_TRUE(facts(space).active);
        EXPECT_TRUE(facts(space).device_ready());
        EXPECT_EQ(std::ssize(pages_.page_table(space)), pages);
        expect_shows(space, written);
        ok(pages_.release(space));
        EXPECT_EQ(copies_.used(), UsedVector{});
    }
}

TEST_F(PagedKvStoreTest, CommitsRaiseCoverageAndGiveNewEpochs) {
    const SpaceId space = ok(pages_.open(2));
    ok(pages_.map(space, 100));
    const auto ids = pages_of_space(space);
    EXPECT_EQ(page(ids[0]).coverage, 0);
    ok(pages_.commit(space, 60));
    EXPECT_EQ(page(ids[0]).coverage, 60);
    EXPECT_EQ(page(ids[1]).coverage, 0);
    const auto first = page(ids[0]).epoch;
    const auto second = page(ids[1]).epoch;
    ok(pages_.commit(space, 60));  // a commit of nothing
    EXPECT_EQ(page(ids[0]).epoch, first);
    ok(pages_.commit(space, 100));
    EXPECT_EQ(page(ids[0]).coverage, 64);
    EXPECT_EQ(page(ids[1]).coverage, 36);
    EXPECT_GT(page(ids[0]).epoch, first);
    EXPECT_GT(page(ids[1]).epoch, second);
    EXPECT_NE(page(ids[0]).epoch, page(ids[1]).epoch);
    const auto full = page(ids[0]).epoch;
    ok(pages_.commit(space, 101));
    EXPECT_EQ(page(ids[0]).epoch, full);
    EXPECT_TRUE(pages_.writable(page(ids[1])));
    EXPECT_FALSE(pages_.writable(page(ids[0])));
}

TEST_F(PagedKvStoreTest, RefusesWhatHasNoRoom) {
    const SpaceId space = ok(pages_.open(3));
    expect_refused([&] { return pages_.open(14); }, RefusalKind::kNoPages, 14, 13);
    expect_refused([&] { return pages_.map(space, 193); }, RefusalKind::kOverReservation, 193, 192);
    ok(pages_.map(space, 65));
    expect_refused([&] { return pages_.map(space, 193); }, RefusalKind::kOverReservation, 193, 192);
    expect_refused([&] { return pages_.commit(space, 129); }, RefusalKind::kNotMapped, 129, 128);
    ok(pages_.commit(space, 65));
    expect_refused([&] { return pages_.commit(space, 64); }, RefusalKind::kBackwards, 64, 65);
    const SpaceId all = ok(pages_.open(13));
    expect_refused([&] { return pages_.open(1); }, RefusalKind::kNoPages, 1, 0);
    ok(pages_.open(0));
    ok(pages_.release(all));
    ok(pages_.open(13));
}

TEST_F(PagedKvStoreTest, RefusesStaleAndForeignHandlesEverywhere) {
    const SpaceId space = ok(pages_.open(1));
    ok(pages_.map(space, 1));
    const PageId page_id = pages_of_space(space)[0];
    ok(pages_.release(space));
    const auto stale = RefusalKind::kStaleHandle;
    expect_refused([&] { return pages_.map(space, 0); }, stale, 1, 2);
    expect_refused([&] { return pages_.commit(space, 0); }, stale, 1, 2);
    expect_refused([&] { return pages_.fork(space, 0, 0); }, stale, 1, 2);
    expect_refused([&] { return pages_.consume(space, 0); }, stale, 1, 2);
    expect_refused([&] { return pages_.freeze(space); }, stale, 1, 2);
    expect_refused([&] { return pages_.finish(space); }, stale, 1, 2);
    expect_refused([&] { return pages_.share(space, 0); }, stale, 1, 2);
    expect_refused([&] { return pages_.release(space); }, stale, 1, 2);
    expect_refused([&] { return pages_.facts(space); }, stale, 1, 2);
    expect_refused([&] { return pages_.valid(space); }, stale, 1, 2);
    expect_refused([&] { return pages_.capture_shape(space); }, stale, 1, 2);
    expect_refused([&] { return pages_.drop(page_id, Tier::kDevice); }, stale, 1, 2);
    expect_refused([&] { return copies_.start_page(page_id, Tier::kHost); }, stale, 1, 2);
    expect_refused([&] { return copies_.start_tail(space); }, stale, 1, 2);
    expect_refused([&] { return pages_.release(SpaceId{}); }, stale, 0, 2);
    expect_refused([&] { return pages_.release(SpaceId{std::uint64_t{5} << 32 | 77}); }, stale, 5, 0);
}

TEST_F(PagedKvStoreTest, RefusesChangesOfFrozenSpacesAndReadsOfActiveOnes) {
    Tokens tokens;
    const SpaceId frozen = frozen_of(tokens, 70);
    expect_refused([&] { return pages_.map(frozen, 71); }, RefusalKind::kFrozen, 1, 0);
    expect_refused([&] { return pages_.commit(frozen, 71); }, RefusalKind::kFrozen, 1, 0);
    expect_refused([&] { return pages_.freeze(frozen); }, RefusalKind::kFrozen, 1, 0);
    expect_refused([&] { return pages_.finish(frozen); }, RefusalKind::kFrozen, 1, 0);
    expect_refused([&] { return pages_.capture_shape(frozen); }, RefusalKind::kFrozen, 1, 0);
    const SpaceId active = ok(pages_.open(1));
    expect_refused([&] { return pages_.fork(active, 0, 0); }, RefusalKind::kActive, 0, 1);
    expect_refused([&] { return pages_.consume(active, 0); }, RefusalKind::kActive, 0, 1);
    expect_refused([&] { return pages_.share(active, 0); }, RefusalKind::kActive, 0, 1);
}

TEST_F(PagedKvStoreTest, DropsNeverTakeTheLastReplicaOrWhatAReaderNeeds) {
    Tokens tokens;
    const SpaceId frozen = frozen_of(tokens, 70);
    const auto ids = pages_of_space(frozen);
    expect_refused([&] { return pages_.drop(ids[0], Tier::kDevice); }, RefusalKind::kLastReplica, 1, 0);
    expect_refused([&] { return pages_.drop(ids[0], Tier::kHost); }, RefusalKind::kNoReplica, 1, -1);
    place_on_host(ids[0]);
    const SpaceId reader = ok(pages_.fork(frozen, 64, 0));
    expect_refused([&] { return pages_.drop(ids[0], Tier::kDevice); }, RefusalKind::kActive, 0, 1);
    ok(pages_.release(reader));
    ok(pages_.drop(ids[0], Tier::kDevice));
    expect_refused([&] { return pages_.drop(ids[0], Tier::kDevice); }, RefusalKind::kNoReplica, 0, -1);
    expect_refused([&] { return pages_.drop(ids[0], Tier::kHost); }, RefusalKind::kLastReplica, 1, 0);
    EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = 1, .host_blocks = 2}));
    EXPECT_EQ(facts(frozen).pages_on_device, 1);
    EXPECT_EQ(facts(frozen).pages_on_host, 1);
    EXPECT_FALSE(facts(frozen).device_ready());
    expect_shows(frozen, tokens);
}

TEST_F(PagedKvStoreTest, FactsAreKnownPerRun) {
    Tokens tokens;
    const SpaceId frozen = frozen_of(tokens, 200);
    const SpaceId reader = ok(pages_.fork(frozen, 128, 1));
    std::vector<RunFacts> runs;
    pages_.for_each_run(frozen, [&](const RunFacts& run) { runs.push_back(run); });
    ASSERT_EQ(runs.size(), 2U);  // the last one first
    EXPECT_EQ(runs[0].first_page, 2);
    EXPECT_EQ(runs[0].pages, 2);
    EXPECT_EQ(runs[0].holders, 1);
    EXPECT_EQ(runs[0].counts.readers, 0);
    EXPECT_EQ(runs[1].pages, 2);
    EXPECT_EQ(runs[1].holders, 2);
    EXPECT_EQ(runs[1].counts.readers, 1);
    EXPECT_EQ(runs[1].counts.on_device, 2);
    EXPECT_EQ(facts(frozen).pages_exclusive, 2);
    EXPECT_EQ(facts(reader).pages_exclusive, 0);
    std::int64_t seen = 0;
    pages_.for_each_space([&](SpaceId, const AddressSpace&) { ++seen; });
    EXPECT_EQ(seen, 2);
}

TEST_F(PagedKvStoreTest, BrokenUseStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    Tokens tokens;
    const SpaceId frozen = frozen_of(tokens, 70);
    const PageId id = pages_of_space(frozen)[0];
    EXPECT_DEATH(static_cast<void>(pages_.open(-1)), "left = 0, right = -1");
    EXPECT_DEATH(static_cast<void>(pages_.fork(frozen, -1, 0)), "left = 0, right = -1");
    EXPECT_DEATH(static_cast<void>(pages_.share(frozen, -1)), "left = 0, right = -1");
    EXPECT_DEATH(static_cast<void>(pages_.page_table(frozen)), "no page table");
    EXPECT_DEATH(pages_.unpin(id), "left = 1, right = 0");
    EXPECT_DEATH(pages_.settle(frozen), "waits for no tail");
    EXPECT_DEATH(pages_.publish_on_device(id, 3), "second Device replica");
    EXPECT_DEATH(pages_.publish_on_host(id, {}, page(id).epoch), "left = 0, right = 2");
    EXPECT_DEATH(pages_.mark_copying(id, false), "left = 0, right = 1");
    EXPECT_DEATH(static_cast<void>(PagedKvStore(page_memory_, kPageBytes, kPages + 1, host_)),
                 "left = 4352, right = 4096");
}

TEST_F(PagedKvStoreTest, BrokenInvariantsStopTheProcessWithBothValues) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    Tokens tokens;
    const SpaceId frozen = frozen_of(tokens, 70);
    const PageId id = pages_of_space(frozen)[0];
    const auto check = [&] { copies_.check_invariants(); };
    // Each leaves the store in a state that no operation may leave.
    EXPECT_DEATH((pages_.pin(id), check()), "left = 1, right = 0");
    EXPECT_DEATH((pages_.mark_copying(id, true), check()), "left = 1, right = 0");
    EXPECT_DEATH((pages_.device_of_copies().give_back(page(id).device_page), check()), "two owners");
    EXPECT_DEATH((static_cast<void>(pages_.device_of_copies().take()), check()), "left = 2, right = 3");
    EXPECT_DEATH((pages_.device_of_copies().reserve(1), check()), "left = 0, right = 1");
    EXPECT_DEATH((static_cast<void>(host_.allocate(1)), check()), "left = 0, right = 1");
    EXPECT_DEATH(pages_.check_invariants({.device_pages = {}, .pins = {id}, .copying = {}}), "left = 0, right = 1");
    EXPECT_DEATH(pages_.check_invariants({.device_pages = {}, .pins = {}, .copying = {id}}), "left = 0, right = 1");
}

}  // namespace
}  // namespace ninfer
