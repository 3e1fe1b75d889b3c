// Copies that end well, fail, are cancelled in flight and drain; and that the Host limit holds all the time.

#include "cpp/memory/host_copy_engine.h"
#include "tests/cpp/state/stores_fixture.h"

namespace ninfer {
namespace {

class ReplicaCopiesTest : public testing_support::StoresTest {
   protected:
    ReplicaCopiesTest() : space_(frozen_of(tokens_, 70)), page_(pages_of_space(space_)[0]) {}

    Tokens tokens_;
    SpaceId space_;
    PageId page_;
};

TEST_F(ReplicaCopiesTest, NothingShowsBeforeItIsPublished) {
    const CopyId copy = ok(copies_.start_page(page_, Tier::kHost));
    EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = 2, .host_blocks = 2}));
    EXPECT_FALSE(page(page_).on_host());
    EXPECT_EQ(page(page_).pins, 1);
    EXPECT_EQ(copies_.status(copy).value(), CopyStatus::kPending);
    expect_refused([&] { return copies_.publish(copy); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return copies_.start_page(page_, Tier::kHost); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return pages_.release(space_); }, RefusalKind::kPinned, 0, 1);
    engine_.complete_all();
    copies_.poll(SIZE_MAX);
    EXPECT_EQ(copies_.status(copy).value(), CopyStatus::kDone);
    EXPECT_FALSE(page(page_).on_host());
    ok(copies_.publish(copy));
    EXPECT_TRUE(page(page_).on_host());
    EXPECT_EQ(page(page_).pins, 0);
    EXPECT_EQ(engine_.copies(), 0U);
    expect_shows(space_, tokens_);
    expect_refused([&] { return copies_.publish(copy); }, RefusalKind::kStaleHandle, 1, 2);
    expect_refused([&] { return copies_.cancel(copy); }, RefusalKind::kStaleHandle, 1, 2);
    expect_refused([&] { return copies_.status(copy); }, RefusalKind::kStaleHandle, 1, 2);
    expect_refused([&] { return copies_.start_page(page_, Tier::kHost); }, RefusalKind::kAlreadyThere, 1, 1);
    expect_refused([&] { return copies_.start_page(page_, Tier::kDevice); }, RefusalKind::kAlreadyThere, 0, 0);
}

TEST_F(ReplicaCopiesTest, AFailedCopyChangesNothing) {
    const CopyId copy = ok(copies_.start_page(page_, Tier::kHost));
    engine_.fail_all();
    EXPECT_EQ(copies_.status(copy).value(), CopyStatus::kFailed);
    expect_refused([&] { return copies_.publish(copy); }, RefusalKind::kCopyFailed, kPageBytes, 0);
    ok(copies_.cancel(copy));
    EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = 2}));
    expect_shows(space_, tokens_);
    place_on_host(page_);  // may be tried again
    expect_shows(space_, tokens_);
}

TEST_F(ReplicaCopiesTest, ACancelledCopyDrainsBeforeItsDestinationIsFree) {
    move_to_host(space_);
    const CopyId copy = ok(copies_.start_page(page_, Tier::kDevice));
    EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = 1, .host_blocks = 4}));
    expect_refused([&] { return pages_.drop(page_, Tier::kHost); }, RefusalKind::kLastReplica, 1, 0);
    ok(copies_.cancel(copy));
    EXPECT_EQ(copies_.open_copies(), 0);
    EXPECT_EQ(copies_.draining_copies(), 1);
    expect_refused([&] { return copies_.status(copy); }, RefusalKind::kStaleHandle, copy.generation(),
                   copy.generation() + 1);
    EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = 1, .host_blocks = 4}));
    copies_.poll(SIZE_MAX);  // the engine still has it
    EXPECT_EQ(copies_.draining_copies(), 1);
    expect_refused([&] { return pages_.release(space_); }, RefusalKind::kPinned, 0, 1);
    expect_refused([&] { return copies_.start_page(page_, Tier::kDevice); }, RefusalKind::kCopyInFlight, 0, 1);
    engine_.fail_all();
    copies_.poll(SIZE_MAX);
    EXPECT_EQ(copies_.draining_copies(), 0);
    EXPECT_EQ(copies_.used(), (UsedVector{.host_blocks = 4}));
    EXPECT_EQ(engine_.copies(), 0U);
    expect_shows(space_, tokens_);
    ok(pages_.release(space_));
    copies_.check_invariants();
    EXPECT_EQ(copies_.used(), UsedVector{});
}

TEST_F(ReplicaCopiesTest, EveryKindCanBeCancelledInFlightAndWhenDone) {
    const ImageId image = ok(images_.open());
    const ImageId frozen = ok(images_.open());
    ok(images_.finish(frozen));
    complete(ok(copies_.start_image(frozen, Tier::kHost)));
    ok(images_.drop(frozen, Tier::kDevice));
    const ImageId restored = ok(images_.restore(frozen));
    const ImageId on_device = ok(images_.open());
    ok(images_.finish(on_device));
    const SpaceId fork = ok(pages_.fork(space_, 66, 1));
    Tokens others;
    const SpaceId demoted = StoresTest::frozen_of(others, 64);
    move_to_host(demoted);
    const PageId away = pages_of_space(demoted)[0];
    const UsedVector before = copies_.used();
    const std::uint64_t pages_before = pages_.fingerprint();
    const auto start_all = [&] {
        return std::vector<CopyId>{ok(copies_.start_page(page_, Tier::kHost)),
                                   ok(copies_.start_page(away, Tier::kDevice)),
                                   ok(copies_.start_tail(fork)),
                                   ok(copies_.start_image(on_device, Tier::kHost)),
                                   ok(copies_.start_image(frozen, Tier::kDevice)),
                                   ok(copies_.start_snapshot(image)),
                                   ok(copies_.start_restore(restored))};
    };
    const std::vector<CopyId> in_flight = start_all();
    for (const CopyId copy : in_flight) ok(copies_.cancel(copy));
    EXPECT_EQ(copies_.draining_copies(), 7);
    engine_.complete_all();
    copies_.poll(0);
    EXPECT_EQ(copies_.used(), before);
    for (const CopyId copy : start_all()) {
        engine_.complete_all();
        ok(copies_.cancel(copy));  // done already: nothing to drain
    }
    EXPECT_EQ(copies_.draining_copies(), 0);
    EXPECT_EQ(copies_.used(), before);
    EXPECT_EQ(pages_.fingerprint(), pages_before);
    EXPECT_FALSE(facts(fork).settled);
    for (const CopyId copy : start_all()) complete(copy);
    EXPECT_TRUE(facts(fork).settled);
    expect_shows(fork, tokens_);
    expect_shows(demoted, others);
}

TEST_F(ReplicaCopiesTest, ATailThatFailedMayBeTriedAgain) {
    const SpaceId fork = ok(pages_.fork(space_, 65, 1));
    const CopyId copy = ok(copies_.start_tail(fork));
    expect_refused([&] { return copies_.start_tail(fork); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return pages_.release(fork); }, RefusalKind::kPinned, 0, 1);
    engine_.fail_all();
    ok(copies_.cancel(copy));
    EXPECT_FALSE(facts(fork).settled);
    settle(fork);
    expect_shows(fork, tokens_);
    expect_refused([&] { return copies_.start_tail(fork); }, RefusalKind::kAlreadyThere, 0, 0);
}

TEST_F(ReplicaCopiesTest, RefusesWhatAWriterMayChange) {
    const SpaceId active = ok(pages_.open(2));
    Tokens own;
    compute(active, own, 70);
    const auto ids = pages_of_space(active);
    expect_refused([&] { return copies_.start_page(ids[1], Tier::kHost); }, RefusalKind::kActive, 0, 1);
    place_on_host(ids[0]);  // full: immutable though its space is active
    compute(active, own, 100);
    expect_shows(active, own);
}

TEST_F(ReplicaCopiesTest, DestinationsNeverExceedTheTiers) {
    std::vector<SpaceId> spaces;
    Tokens others;
    spaces.push_back(frozen_of(others, 640));
    const auto ids = pages_of_space(spaces[0]);
    std::vector<CopyId> copies;
    for (const PageId id : ids) copies.push_back(ok(copies_.start_page(id, Tier::kHost)));
    EXPECT_EQ(host_.blocks_free(), 0);
    expect_refused([&] { return copies_.start_page(page_, Tier::kHost); }, RefusalKind::kNoHostBlocks, 2, 0);
    const ImageId image = ok(images_.open());
    expect_refused([&] { return copies_.start_snapshot(image); }, RefusalKind::kNoHostBlocks, kImageBlocks, 0);
    engine_.complete_all();
    for (const CopyId copy : copies) ok(copies_.publish(copy));
    for (const PageId id : ids) ok(pages_.drop(id, Tier::kDevice));
    const SpaceId filler = ok(pages_.open(13));
    const CopyId last = ok(copies_.start_page(ids[0], Tier::kDevice));
    expect_refused([&] { return copies_.start_page(ids[1], Tier::kDevice); }, RefusalKind::kNoPages, 1, 0);
    complete(last);
    ok(pages_.release(filler));
    ok(images_.finish(image));
    expect_refused([&] { return copies_.start_image(image, Tier::kHost); }, RefusalKind::kNoHostBlocks, kImageBlocks,
                   0);
    ok(pages_.drop(ids[0], Tier::kHost));
    ok(pages_.release(spaces[0]));
    complete(ok(copies_.start_image(image, Tier::kHost)));
    ok(images_.drop(image, Tier::kDevice));
    const ImageId first = ok(images_.open());
    const ImageId second = ok(images_.open());
    ok(images_.finish(first));
    ok(images_.finish(second));
    expect_refused([&] { return copies_.start_image(image, Tier::kDevice); }, RefusalKind::kNoImageSlots, 1, 0);
}

TEST_F(ReplicaCopiesTest, TheProcessorsEngineSpreadsACopyOverPolls) {
    HostCopyEngine engine;
    ReplicaCopies copies(pages_, nullptr, host_, engine);
    const CopyId copy = copies.start_page(page_, Tier::kHost).value();
    int polls = 0;
    for (; copies.status(copy).value() == CopyStatus::kPending; ++polls) copies.poll(100);
    EXPECT_EQ(polls, 3);  // 256 bytes
    EXPECT_TRUE(copies.publish(copy).has_value());
    expect_shows(space_, tokens_);
    EXPECT_EQ(copies.capacity(), (CapacityVector{.device_pages = kPages, .host_blocks = kBlocks}));
    EXPECT_EQ(copies.used(), (UsedVector{.device_pages = 2, .host_blocks = 2}));
    copies.check_invariants();
}

TEST_F(ReplicaCopiesTest, TheEngineGetsWhatPollsMayMove) {
    Tokens tokens;
    const auto pages = pages_of_space(frozen_of(tokens, 8 * kPageTokens));
    testing_support::ManualCopyEngine engine;
    ReplicaCopies copies(pages_, nullptr, host_, engine, 2 * kPageBytes);
    const auto expect_pending = [&](std::size_t handed_over, std::int64_t waiting) {
        EXPECT_EQ(engine.copies(), handed_over);
        EXPECT_EQ(copies.waiting_copies(), waiting);
        copies.check_invariants();
    };
    std::vector<CopyId> started;
    for (const PageId page : pages) started.push_back(copies.start_page(page, Tier::kHost).value());
    // Destinations are taken and sources pinned, of all of them.
    EXPECT_EQ(copies.used().host_blocks, 16);
    EXPECT_EQ(page(pages.back()).pins, 1);
    expect_pending(2, 6);
    copies.poll(0);
    copies.poll(kPageBytes);  // one besides the oldest is in flight
    expect_pending(2, 6);
    EXPECT_EQ(copies.status(started[2]).value(), CopyStatus::kPending);
    EXPECT_EQ(copies.publish(started[2]).error().kind, RefusalKind::kCopyInFlight);
    ASSERT_TRUE(copies.cancel(started[2]).has_value());
    expect_pending(2, 5);
    EXPECT_EQ(copies.draining_copies(), 1);
    EXPECT_EQ(copies.used().host_blocks, 16);
    EXPECT_TRUE(copies.poll(0));  // it was never handed over
    EXPECT_EQ(copies.used().host_blocks, 14);
    engine.complete_all();
    copies.poll(kPageBytes);
    expect_pending(3, 4);
    copies.poll(SIZE_MAX);
    expect_pending(7, 0);
    engine.complete_all();
    for (const CopyId copy : started) static_cast<void>(copies.publish(copy));
    expect_pending(0, 0);
    for (const PageId id : pages) EXPECT_EQ(page(id).on_host(), id != pages[2]);
}

TEST_F(ReplicaCopiesTest, CopiesThatWaitedAndWereCancelledLeaveNothing) {
    testing_support::ManualCopyEngine engine;
    ReplicaCopies copies(pages_, nullptr, host_, engine, 0);
    std::size_t bytes = 0;
    for (int i = 0; i < 100; ++i) {
        const CopyId copy = copies.start_page(page_, Tier::kHost).value();
        ASSERT_TRUE(copies.cancel(copy).has_value());
        EXPECT_TRUE(copies.poll(0));
        if (i == 0) bytes = copies.bookkeeping_bytes();
    }
    EXPECT_EQ(copies.bookkeeping_bytes(), bytes);
    EXPECT_EQ(copies.used(), (UsedVector{.device_pages = 2}));
}

TEST_F(ReplicaCopiesTest, ACopyThatLostItsPinStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    static_cast<void>(ok(copies_.start_page(page_, Tier::kHost)));
    EXPECT_DEATH((pages_.unpin(page_), copies_.check_invariants()), "left = 0, right = 1");
    EXPECT_DEATH((pages_.mark_copying(page_, false), copies_.check_invariants()), "left = 0, right = 1");
}

TEST_F(ReplicaCopiesTest, AReplicaOfAnotherContentMakesNothingValid) {
    pages_.publish_on_host(page_, host_.allocate(2).value(), page(page_).epoch + 1);
    EXPECT_TRUE(pages_.valid(space_).value());  // by the Device replica
    ASSERT_TRUE(pages_.drop(page_, Tier::kDevice).has_value());
    EXPECT_FALSE(pages_.valid(space_).value());
    ASSERT_TRUE(pages_.release(space_).has_value());
}

TEST_F(ReplicaCopiesTest, AHostReplicaOfAnotherContentStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const std::uint64_t epoch = page(page_).epoch;
    EXPECT_DEATH(
        {
            pages_.publish_on_host(page_, host_.allocate(2).value(), epoch + 1);
            copies_.check_invariants();
        },
        "left = " + std::to_string(epoch + 1) + ", right = " + std::to_string(epoch));
    place_on_host(page_);
    EXPECT_EQ(page(page_).host_epoch, epoch);
}

}  // namespace
}  // namespace ninfer
