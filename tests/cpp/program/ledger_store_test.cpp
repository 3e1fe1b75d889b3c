#include "cpp/program/ledger_store.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/counting_new.h"

namespace ninfer {
namespace {

using testing_support::allocations;

const IdentityHeader kHeader{"salt", "mode", 0};

std::vector<std::int32_t> counting(std::int32_t first, std::int64_t count) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    std::iota(ids.begin(), ids.end(), first);
    return ids;
}

class LedgerStoreTest : public testing::Test {
   protected:
    ~LedgerStoreTest() override { store_.check_invariants(); }

    LedgerId open(std::int64_t tokens, std::int64_t room) {
        const LedgerId id = store_.open(kHeader, room);
        store_.append(id, {counting(0, tokens), {}, TokenOrigin::kPrompt}).value();
        return id;
    }
    std::vector<std::int32_t> all(LedgerId id) const {
        std::vector<std::int32_t> ids(static_cast<std::size_t>(store_.length(id).value()));
        store_.read(id, 0, ids).value();
        return ids;
    }
    // The refusal of a call that must change nothing.
    template <typename Call>
    std::string refused(Call&& call) {
        const std::uint64_t before = store_.fingerprint();
        const auto result = call();
        EXPECT_EQ(store_.fingerprint(), before);
        return result.has_value() ? "no refusal" : result.error().message();
    }

    LedgerStore store_;
};

TEST_F(LedgerStoreTest, RefusalsNameBothValuesAndChangeNothing) {
    const LedgerId id = open(10, 12);
    const auto three = counting(0, 3);
    EXPECT_EQ(refused([&] { return store_.append(id, {three, {}, TokenOrigin::kOutput}); }),
              "over_reservation: wanted 13, found 12");
    EXPECT_EQ(refused([&] { return store_.fork(id, 11, 20); }), "beyond_frontier: wanted 11, found 10");
    EXPECT_EQ(refused([&] { return store_.fork(id, -1, 20); }), "beyond_frontier: wanted -1, found 10");
    EXPECT_EQ(refused([&] { return store_.fork(id, 10, 9); }), "over_reservation: wanted 10, found 9");
    EXPECT_EQ(refused([&] { return store_.record_rewrite_frontier(id, 11); }), "beyond_frontier: wanted 11, found 10");
    EXPECT_EQ(refused([&] { return store_.record_rewrite_frontier(id, -1); }), "backwards: wanted -1, found -1");
    std::vector<std::int32_t> out(4);
    EXPECT_EQ(refused([&] { return store_.read(id, 7, out); }), "beyond_frontier: wanted 11, found 10");
    EXPECT_EQ(refused([&] { return store_.view(id, 11); }), "beyond_frontier: wanted 12, found 10");
    EXPECT_EQ(refused([&] { return store_.facts(id, 10); }), "beyond_frontier: wanted 11, found 10");
    EXPECT_EQ(refused([&] { return store_.digest_at(id, 11); }), "beyond_frontier: wanted 11, found 10");
    EXPECT_EQ(refused([&] { return store_.count(id, TokenOrigin::kPrompt, 0, 11); }),
              "beyond_frontier: wanted 11, found 10");
    store_.release(id).value();
    EXPECT_EQ(refused([&] { return store_.length(id); }), "stale_handle: wanted 1, found 2");
    EXPECT_EQ(refused([&] { return store_.release(id); }), "stale_handle: wanted 1, found 2");
    EXPECT_EQ(refused([&] { return store_.seal({5}); }), "stale_handle: wanted 0, found 0");
}

TEST_F(LedgerStoreTest, EveryFrontierAroundBlocksForks) {
    for (const std::int64_t frontier : {0, 1, 63, 64, 65, 127, 128, 129, 200}) {
        const LedgerId whole = open(200, 300);
        const LedgerId branch = store_.fork(whole, frontier, 400).value();
        store_.append(branch, {counting(1000, 100), {}, TokenOrigin::kOutput}).value();
        store_.append(whole, {counting(200, 100), {}, TokenOrigin::kOutput}).value();
        auto expected = counting(0, frontier);
        const auto more = counting(1000, 100);
        expected.insert(expected.end(), more.begin(), more.end());
        EXPECT_EQ(all(branch), expected);
        EXPECT_EQ(all(whole), counting(0, 300));
        store_.check_invariants();
        store_.release(whole).value();
        EXPECT_EQ(all(branch), expected);
        store_.release(branch).value();
        EXPECT_EQ(store_.run_count(), 0);
    }
}

TEST_F(LedgerStoreTest, WhatIsInheritedIsPrompt) {
    const LedgerId whole = open(10, 20);
    store_.append(whole, {counting(10, 5), {}, TokenOrigin::kOutput}).value();
    EXPECT_EQ(store_.count(whole, TokenOrigin::kOutput, 0, 15).value(), 5);
    EXPECT_EQ(store_.count(whole, TokenOrigin::kPrompt, 8, 12).value(), 2);
    const LedgerId branch = store_.fork(whole, 13, 20).value();
    EXPECT_EQ(store_.count(branch, TokenOrigin::kPrompt, 0, 13).value(), 13);
    store_.append(branch, {counting(0, 2), {}, TokenOrigin::kOutput}).value();
    EXPECT_EQ(store_.count(branch, TokenOrigin::kOutput, 0, 15).value(), 2);
}

TEST_F(LedgerStoreTest, RewriteFrontiersGoWithTheTokens) {
    const LedgerId whole = open(10, 10);
    for (const std::int64_t frontier : {0, 3, 7, 10}) store_.record_rewrite_frontier(whole, frontier).value();
    EXPECT_EQ(refused([&] { return store_.record_rewrite_frontier(whole, 10); }), "backwards: wanted 10, found 10");
    const LedgerId branch = store_.fork(whole, 7, 7).value();
    const auto kept = store_.rewrite_frontiers(branch).value();
    EXPECT_EQ(std::vector<std::int64_t>(kept.begin(), kept.end()), (std::vector<std::int64_t>{0, 3, 7}));
}

TEST_F(LedgerStoreTest, DecodeRoundsAllocateNothingWhereverOthersFork) {
    const LedgerId whole = open(100, 2000);
    store_.fork(whole, 100, 100).value();
    store_.append(whole, {counting(0, 50), {}, TokenOrigin::kPrompt}).value();
    store_.fork(whole, 120, 120).value();
    const std::array<std::int32_t, 1> token = {7};
    // The first output token is a change of origin; its place is reserved like that of all others.
    const std::int64_t before = allocations();
    for (int i = 0; i < 1850; ++i) store_.append(whole, {token, {}, TokenOrigin::kOutput}).value();
    EXPECT_EQ(allocations(), before);
    EXPECT_EQ(store_.length(whole).value(), 2000);
}

TEST_F(LedgerStoreTest, TokensSinceTheLastForkLieTogether) {
    const LedgerId whole = open(100, 400);
    store_.fork(whole, 80, 80).value();
    store_.append(whole, {counting(100, 100), {}, TokenOrigin::kPrompt}).value();
    const auto view = store_.view(whole, 80).value();
    EXPECT_EQ(std::vector<std::int32_t>(view.begin(), view.end()), counting(80, 120));
    EXPECT_EQ(store_.view(whole, 79).value().size(), 1U);
    EXPECT_TRUE(store_.view(whole, 200).value().empty());
}

TEST_F(LedgerStoreTest, PositionsOfTextGoOnBehindMedia) {
    const LedgerId id = store_.open(kHeader, 100);
    const std::array<TokenSpan, 2> spans = {text_span(0, 0), TokenSpan{4, {1, {4, 4, 9}, MediaPiece{}}, {0, 0, 1}}};
    store_.append(id, {counting(0, 8), spans, TokenOrigin::kPrompt}).value();
    store_.append(id, {counting(0, 2), {}, TokenOrigin::kOutput}).value();
    EXPECT_EQ(store_.facts(id, 7).value().positions, (AxisPositions{4, 4, 12}));
    EXPECT_EQ(store_.facts(id, 8).value().positions, (AxisPositions{13, 13, 13}));
    EXPECT_EQ(store_.facts(id, 9).value().positions, (AxisPositions{14, 14, 14}));
    EXPECT_FALSE(store_.facts(id, 9).value().media.has_value());
}

TEST_F(LedgerStoreTest, SealedLedgersKeepTheMemoryOfTheirTokens) {
    const LedgerId id = open(1000, 250000);
    EXPECT_LE(1000000U, store_.bookkeeping_bytes());
    store_.seal(id).value();
    EXPECT_LE(store_.bookkeeping_bytes(), 8000U);
    EXPECT_EQ(store_.room(id).value(), 1000);
    EXPECT_EQ(all(id), counting(0, 1000));
    const std::array<std::int32_t, 1> token = {7};
    EXPECT_EQ(refused([&] { return store_.append(id, {token, {}, TokenOrigin::kOutput}); }),
              "over_reservation: wanted 1001, found 1000");
}

TEST_F(LedgerStoreTest, AConversationOfManyTurnsHasFewRuns) {
    LedgerId id = open(1000, 1000);
    for (std::int64_t turn = 0; turn < 200; ++turn) {
        const std::int64_t length = store_.length(id).value();
        const LedgerId next = store_.fork(id, length, length + 100).value();
        store_.append(next, {counting(0, 100), {}, TokenOrigin::kPrompt}).value();
        store_.release(id).value();
        store_.seal(next).value();
        id = next;
    }
    EXPECT_LE(store_.run_count(), 12);
    EXPECT_EQ(store_.length(id).value(), 21000);
}

// A finished sequence keeps its computed tokens: not the last one, of which a request only ever sampled.
TEST_F(LedgerStoreTest, AConversationWhoseLastTokensAreNotKeptHasFewRuns) {
    LedgerId id = open(1000, 1000);
    for (std::int64_t turn = 0; turn < 200; ++turn) {
        const std::int64_t length = store_.length(id).value();
        const LedgerId next = store_.fork(id, length, length + 101).value();
        store_.append(next, {counting(0, 101), {}, TokenOrigin::kPrompt}).value();
        store_.release(id).value();
        id = store_.fork(next, length + 100, length + 100).value();
        store_.release(next).value();
    }
    EXPECT_LE(store_.run_count(), 12);
    EXPECT_EQ(store_.length(id).value(), 21000);
}

TEST_F(LedgerStoreTest, HeadersExistOnceAndAsLongAsTheyAreUsed) {
    const LedgerId one = store_.open({"a", "bc", 0}, 0);
    const LedgerId two = store_.open({"ab", "c", 0}, 0);
    const LedgerId same = store_.fork(one, 0, 0).value();
    EXPECT_NE(store_.digest_at(one, 0).value(), store_.digest_at(two, 0).value());
    EXPECT_EQ(store_.header(one).value(), store_.header(same).value());
    store_.release(one).value();
    EXPECT_EQ(store_.header(same).value()->mode, "bc");
    store_.release(same).value();
    const LedgerId again = store_.open({"ab", "c", 0}, 0);
    EXPECT_EQ(store_.header(again).value(), store_.header(two).value());
}

// Runs of a chain are each more than half as long as the one before, so few that their number is a logarithm.
TEST_F(LedgerStoreTest, WhatForksPartedIsJoinedWhenTheyGo) {
    const LedgerId whole = open(10'000, 10'000);
    for (const std::int64_t step : {7, -7}) {
        for (std::int64_t frontier = step > 0 ? 1 : 9'999; 0 < frontier && frontier < 10'000; frontier += step) {
            const LedgerId fork = store_.fork(whole, frontier, frontier + frontier % 2).value();
            store_.release(fork).value();
            ASSERT_LE(store_.run_count(), 14) << "fork at " << frontier;
        }
        store_.check_invariants();
        EXPECT_EQ(all(whole), counting(0, 10'000));
    }
}

TEST_F(LedgerStoreTest, ALedgerKeepsItsRoomWhenItsSourceGoes) {
    const LedgerId source = open(100, 100);
    const LedgerId fork = store_.fork(source, 70, 200).value();
    store_.release(source).value();
    store_.check_invariants();
    const auto more = counting(70, 130);
    const std::int64_t before = allocations();
    for (std::size_t i = 0; i < more.size(); ++i)
        store_.append(fork, {std::span(more).subspan(i, 1), {}, TokenOrigin::kPrompt}).value();
    EXPECT_EQ(allocations(), before);
    EXPECT_EQ(all(fork), counting(0, 200));
    // Full, it is as any other.
    store_.seal(fork).value();
    EXPECT_EQ(store_.run_count(), 1);
}

}  // namespace
}  // namespace ninfer
