// Fork, consume, freeze, finish and share at every kind of frontier.

#include "tests/cpp/state/stores_fixture.h"

namespace ninfer {
namespace {

using testing_support::StoresTest;

constexpr std::int64_t kBoundaries[] = {0, 1, 63, 64, 65, 127, 128, 129};

std::int64_t pages(std::int64_t tokens) { return (tokens + 63) / 64; }

using PagedKvLineageTest = StoresTest;

TEST_F(PagedKvLineageTest, ForksAtEveryFrontierShareFullPagesAndCopyOneTail) {
    Tokens tokens;
    const SpaceId source = frozen_of(tokens, 150);
    for (std::int64_t frontier = 0; frontier <= 150; ++frontier) {
        const SpaceId fork = ok(pages_.fork(source, frontier, 2));
        const bool copies = frontier % 64 != 0;
        EXPECT_EQ(copies_.used(),
                  (UsedVector{.device_pages = 3 + (copies ? 1 : 0), .device_pages_reserved = copies ? 1 : 2}));
        EXPECT_EQ(facts(fork).settled, !copies);
        EXPECT_EQ(facts(fork).pages, pages(frontier));
        EXPECT_EQ(facts(fork).pages_exclusive, copies ? 1 : 0);
        if (copies) {
            EXPECT_FALSE(pages_.valid(fork).value());
            expect_refused([&] { return pages_.map(fork, frontier); }, RefusalKind::kUnsettled, 0, 1);
            settle(fork);
        }
        Tokens own(tokens.begin(), tokens.begin() + frontier);
        expect_shows(fork, own);
        compute(fork, own, frontier + 3);  // written by the fork alone
        expect_shows(fork, own);
        expect_shows(source, tokens);
        ok(pages_.release(fork));
    }
    EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = 3}));
}

TEST_F(PagedKvLineageTest, ForkRefusals) {
    Tokens tokens;
    const SpaceId source = frozen_of(tokens, 150);
    expect_refused([&] { return pages_.fork(source, 151, 5); }, RefusalKind::kBeyondFrontier, 151, 150);
    expect_refused([&] { return pages_.fork(source, 129, 0); }, RefusalKind::kOverReservation, 129, 128);
    expect_refused([&] { return pages_.fork(source, 129, 14); }, RefusalKind::kNoPages, 14, 13);
    const auto ids = pages_of_space(source);
    place_on_host(ids[1]);
    ok(pages_.drop(ids[1], Tier::kDevice));
    expect_refused([&] { return pages_.fork(source, 129, 1); }, RefusalKind::kNotOnDevice, 3, 2);
    expect_refused([&] { return pages_.fork(source, 65, 1); }, RefusalKind::kNotOnDevice, 2, 1);
    ok(pages_.release(ok(pages_.fork(source, 64, 1))));  // what it needs is there
    complete(ok(copies_.start_page(ids[1], Tier::kDevice)));
    settle(ok(pages_.fork(source, 129, 1)));
}

TEST_F(PagedKvLineageTest, ConsumeWritesItsOwnTailInPlace) {
    for (const std::int64_t frontier : kBoundaries) {
        Tokens tokens;
        const SpaceId source = frozen_of(tokens, frontier);
        if (frontier > 0) place_on_host(pages_of_space(source).back());
        const SpaceId moved = ok(pages_.consume(source, 2));
        EXPECT_TRUE(facts(moved).settled);
        const bool keeps = frontier > 0 && frontier % 64 == 0;  // a full last page stays immutable
        EXPECT_EQ(
            copies_.used(),
            (UsedVector{.device_pages = pages(frontier), .device_pages_reserved = 2, .host_blocks = keeps ? 2 : 0}));
        EXPECT_EQ(facts(moved).runs, 1);
        expect_refused([&] { return pages_.release(source); }, RefusalKind::kStaleHandle, source.generation(),
                       moved.generation());
        compute(moved, tokens, frontier + 100);
        expect_shows(moved, tokens);
        ok(pages_.release(moved));
        EXPECT_EQ(copies_.used(), UsedVector{});
    }
}

TEST_F(PagedKvLineageTest, ConsumeCopiesATailThatOthersSee) {
    for (const std::int64_t frontier : kBoundaries) {
        Tokens tokens;
        const SpaceId source = frozen_of(tokens, frontier);
        const SpaceId other = ok(pages_.share(source, frontier));
        if (frontier % 64 != 0)
            expect_refused([&] { return pages_.consume(source, 0); }, RefusalKind::kOverReservation, frontier,
                           frontier / 64 * 64);
        const SpaceId moved = ok(pages_.consume(source, 2));
        if (frontier % 64 != 0) {
            EXPECT_FALSE(facts(moved).settled);
            expect_refused([&] { return pages_.release(other); }, RefusalKind::kPinned, 0, 1);
            settle(moved);
        }
        Tokens own = tokens;
        compute(moved, own, frontier + 20);
        expect_shows(moved, own);
        expect_shows(other, tokens);
        ok(pages_.release(other));
        expect_shows(moved, own);
        ok(pages_.release(moved));
        EXPECT_EQ(copies_.used(), UsedVector{});
    }
}

TEST_F(PagedKvLineageTest, ConsumeRefusals) {
    Tokens tokens;
    const SpaceId source = frozen_of(tokens, 70);
    const auto ids = pages_of_space(source);
    expect_refused([&] { return pages_.consume(source, 15); }, RefusalKind::kNoPages, 15, 14);
    const CopyId copy = ok(copies_.start_page(ids[1], Tier::kHost));
    expect_refused([&] { return pages_.consume(source, 1); }, RefusalKind::kPinned, 0, 1);
    complete(copy);
    ok(pages_.drop(ids[1], Tier::kDevice));
    expect_refused([&] { return pages_.consume(source, 1); }, RefusalKind::kNotOnDevice, 2, 1);
}

TEST_F(PagedKvLineageTest, AViewOfAPartMayBeWrittenOnceItIsAlone) {
    Tokens tokens;
    const SpaceId whole = frozen_of(tokens, 128);
    const SpaceId part = ok(pages_.share(whole, 70));
    EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = 2}));
    expect_shows(part, tokens);
    const PageId tail = pages_of_space(part)[1];
    EXPECT_EQ(page(tail).coverage, 64);
    EXPECT_EQ(pages_.references(page(tail)), 2);
    ok(pages_.release(whole));
    const auto epoch = page(tail).epoch;
    const SpaceId moved = ok(pages_.consume(part, 1));
    EXPECT_EQ(page(tail).coverage, 6);
    EXPECT_GT(page(tail).epoch, epoch);
    Tokens own(tokens.begin(), tokens.begin() + 70);
    compute(moved, own, 90);
    expect_shows(moved, own);
}

TEST_F(PagedKvLineageTest, ShareRefusalsAndBoundaries) {
    Tokens tokens;
    const SpaceId whole = frozen_of(tokens, 129);
    expect_refused([&] { return pages_.share(whole, 130); }, RefusalKind::kBeyondFrontier, 130, 129);
    std::vector<SpaceId> parts;
    for (const std::int64_t frontier : kBoundaries) {
        parts.push_back(ok(pages_.share(whole, frontier)));
        EXPECT_EQ(facts(parts.back()).pages, pages(frontier));
        expect_shows(parts.back(), tokens);
    }
    ok(pages_.release(whole));
    for (const SpaceId part : parts) expect_shows(part, tokens);
    for (const SpaceId part : parts) ok(pages_.release(part));
    EXPECT_EQ(copies_.used(), UsedVector{});
}

TEST_F(PagedKvLineageTest, FreezeKeepsTheTailAndCopiesOnePageForTheWriter) {
    for (const std::int64_t frontier : kBoundaries) {
        Tokens tokens;
        const SpaceId active = ok(pages_.open(5));
        compute(active, tokens, frontier);
        ok(pages_.map(active, frontier + 70));  // mapped ahead and not committed: stays with the writer
        const std::int64_t mapped = facts(active).pages;
        const bool copies = frontier % 64 != 0;
        const CaptureShape shape = ok(pages_.capture_shape(active));
        EXPECT_EQ(shape.shared, 0);
        EXPECT_EQ(shape.frozen_in_place, pages(frontier));
        EXPECT_EQ(shape.copies, copies ? 1 : 0);
        const auto before = pages_of_space(active);
        const SpaceId frozen = ok(pages_.freeze(active));
        EXPECT_EQ(pages_of_space(frozen), std::vector<PageId>(before.begin(), before.begin() + pages(frontier)));
        EXPECT_EQ(copies_.used().device_pages, mapped + shape.copies);
        EXPECT_EQ(copies_.used().device_pages_reserved, 5 - mapped - shape.copies);
        EXPECT_EQ(facts(active).settled, !copies);
        if (copies) {
            expect_refused([&] { return pages_.release(frozen); }, RefusalKind::kPinned, 0, 1);
            settle(active);
        }
        Tokens own = tokens;
        compute(active, own, frontier + 70);
        expect_shows(active, own);
        expect_shows(frozen, tokens);
        ok(pages_.release(active));
        expect_shows(frozen, tokens);
        ok(pages_.release(frozen));
        EXPECT_EQ(copies_.used(), UsedVector{});
    }
}

TEST_F(PagedKvLineageTest, FreezeTwiceSharesWhatIsFrozenAlready) {
    Tokens tokens;
    const SpaceId active = ok(pages_.open(6));
    compute(active, tokens, 130);
    const SpaceId first = ok(pages_.freeze(active));
    expect_refused([&] { return pages_.freeze(active); }, RefusalKind::kUnsettled, 0, 1);
    expect_refused([&] { return pages_.finish(active); }, RefusalKind::kUnsettled, 0, 1);
    expect_refused([&] { return pages_.commit(active, 131); }, RefusalKind::kUnsettled, 0, 1);
    settle(active);
    const Tokens at_first = tokens;
    compute(active, tokens, 200);
    const CaptureShape shape = ok(pages_.capture_shape(active));
    EXPECT_EQ(shape.shared, 2);
    EXPECT_EQ(shape.frozen_in_place, 2);
    EXPECT_EQ(shape.copies, 1);
    const SpaceId second = ok(pages_.freeze(active));
    settle(active);
    compute(active, tokens, 210);
    expect_shows(first, at_first);
    expect_shows(second, tokens);
    expect_shows(active, tokens);
    ok(pages_.release(second));
    ok(pages_.finish(active));
    expect_shows(active, tokens);
    ok(pages_.release(first));
    EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = 4}));
    expect_shows(active, tokens);
}

TEST_F(PagedKvLineageTest, FreezeWithoutAPageForTheTailIsRefused) {
    Tokens tokens;
    const SpaceId active = ok(pages_.open(2));
    compute(active, tokens, 100);
    expect_refused([&] { return pages_.freeze(active); }, RefusalKind::kOverReservation, 192, 128);
    compute(active, tokens, 128);
    expect_shows(ok(pages_.freeze(active)), tokens);
}

TEST_F(PagedKvLineageTest, FinishGivesBackWhatIsNotCommitted) {
    for (const std::int64_t frontier : kBoundaries) {
        Tokens tokens;
        const SpaceId space = ok(pages_.open(6));
        compute(space, tokens, frontier);
        ok(pages_.map(space, frontier + 130));
        ok(pages_.finish(space));
        EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = pages(frontier)}));
        EXPECT_FALSE(facts(space).active);
        EXPECT_EQ(facts(space).pages, pages(frontier));
        expect_shows(space, tokens);
        ok(pages_.release(space));
    }
}

TEST_F(PagedKvLineageTest, ChainsBecomeShortAgainWhenCapturesGo) {
    Tokens tokens;
    SpaceId space = ok(pages_.open(14));
    std::vector<SpaceId> captures;
    for (std::int64_t end = 64; end <= 640; end += 64) {
        compute(space, tokens, end);
        captures.push_back(ok(pages_.freeze(space)));
    }
    compute(space, tokens, 650);
    ok(pages_.finish(space));
    EXPECT_EQ(facts(space).runs, 11);
    for (const SpaceId capture : captures) ok(pages_.release(capture));
    space = ok(pages_.consume(space, 1));
    EXPECT_EQ(facts(space).runs, 1);
    compute(space, tokens, 700);
    ok(pages_.finish(space));
    expect_shows(space, tokens);
}

TEST_F(PagedKvLineageTest, WhatForksPartedIsJoinedWhenTheyGo) {
    Tokens tokens;
    const SpaceId source = frozen_of(tokens, 10 * 64);
    for (std::int64_t frontier = 1; frontier < 10 * 64; frontier += 37) {
        const SpaceId fork = ok(pages_.fork(source, frontier, 1));
        const SpaceId view = ok(pages_.share(source, 10 * 64 - frontier));
        ok(pages_.release(random_() % 2 == 0 ? fork : view));
        expect_shows(source, tokens);
        for (const SpaceId other : {fork, view})
            if (pages_.find(other).has_value()) ok(pages_.release(other));
        EXPECT_EQ(facts(source).runs, 1) << "fork at " << frontier;
        expect_shows(source, tokens);
    }
}

TEST_F(PagedKvLineageTest, ARunningSpaceOfWhichCapturesComeAndGoHasFewRuns) {
    Tokens tokens;
    const SpaceId running = ok(pages_.open(12));
    for (std::int64_t pages = 1; pages <= 10; ++pages) {
        compute(running, tokens, pages * 64);
        ok(pages_.release(ok(pages_.freeze(running))));
        EXPECT_LE(facts(running).runs, 2);  // its own leaf, and what comes before
    }
    ok(pages_.finish(running));
    EXPECT_EQ(facts(running).runs, 1);
    expect_shows(running, tokens);
}

TEST_F(PagedKvLineageTest, PagesOfDemotedSpacesComeBackAndGoOn) {
    Tokens tokens;
    const SpaceId source = frozen_of(tokens, 150);
    move_to_host(source);
    EXPECT_EQ(copies_.used(), (UsedVector{.host_blocks = 6}));
    expect_shows(source, tokens);
    std::fill_n(page_memory_.data(), page_memory_.size(), std::byte{0xDD});
    for (const PageId id : pages_of_space(source)) complete(ok(copies_.start_page(id, Tier::kDevice)));
    expect_shows(source, tokens);
    const SpaceId moved = ok(pages_.consume(source, 1));
    EXPECT_EQ(copies_.used().host_blocks, 4);  // the tail's went
    compute(moved, tokens, 190);
    expect_shows(moved, tokens);
}

TEST_F(PagedKvLineageTest, AnUnsettledSpaceMayBeGivenUp) {
    Tokens tokens;
    const SpaceId source = frozen_of(tokens, 70);
    const SpaceId fork = ok(pages_.fork(source, 65, 3));
    EXPECT_EQ(facts(source).pins, 1);
    ok(pages_.release(fork));
    EXPECT_EQ(facts(source).pins, 0);
    EXPECT_EQ(copies_.used(), (UsedVector{.device_pages = 2}));
}

}  // namespace
}  // namespace ninfer
