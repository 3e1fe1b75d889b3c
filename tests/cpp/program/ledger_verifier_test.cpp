#include "cpp/program/ledger_verifier.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/support/counting_new.h"

namespace ninfer {
namespace {

const IdentityHeader kHeader{"salt", "mode", 0};

class LedgerVerifierTest : public testing::Test {
   protected:
    LedgerVerifierTest() : ids_(200), verifier_(store_) { std::iota(ids_.begin(), ids_.end(), 0); }

    LedgerId open(const IdentityHeader& header, std::span<const std::int32_t> ids) {
        const LedgerId id = store_.open(header, std::ssize(ids));
        store_.append(id, {ids, {}, TokenOrigin::kPrompt}).value();
        return id;
    }
    Verification verify(const PromptView& prompt, LedgerId ledger, std::int64_t frontier) {
        const LedgerCandidate candidate{ledger, frontier};
        Verification answer;
        verifier_.verify(prompt, {&candidate, 1}, {&answer, 1}).value();
        return answer;
    }
    PromptView prompt(std::span<const TokenSpan> spans = {}) const { return {&kHeader, ids_, spans}; }

    std::vector<std::int32_t> ids_;
    LedgerStore store_;
    LedgerVerifier verifier_;
};

TEST_F(LedgerVerifierTest, FrontiersUpToTheFirstDifferenceAreExact) {
    for (const std::size_t at : {0U, 1U, 63U, 64U, 65U, 199U}) {
        auto other = ids_;
        other[at] = -1;
        const LedgerId ledger = open(kHeader, other);
        const auto differs = static_cast<std::int64_t>(at);
        for (const std::int64_t frontier : {differs, differs + 1}) {
            const Verification answer = verify(prompt(), ledger, frontier);
            EXPECT_EQ(answer.matched, differs);
            EXPECT_EQ(answer.difference, Difference::kToken);
            EXPECT_EQ(answer.exact, frontier == differs);
        }
    }
}

TEST_F(LedgerVerifierTest, TheShorterOneEndsTheMatchWithoutADifference) {
    const LedgerId whole = open(kHeader, ids_);
    const LedgerId half = store_.fork(whole, 100, 100).value();
    EXPECT_EQ(verify(prompt(), half, 100).matched, 100);
    EXPECT_TRUE(verify(prompt(), half, 100).exact);
    const PromptView shorter{&kHeader, std::span(ids_).first(50), {}};
    const Verification answer = verify(shorter, whole, 100);
    EXPECT_EQ(answer.matched, 50);
    EXPECT_EQ(answer.difference, Difference::kNone);
    EXPECT_FALSE(answer.exact);
    EXPECT_TRUE(verify(shorter, whole, 50).exact);
}

TEST_F(LedgerVerifierTest, OtherHeadersMatchNothingNotEvenTheEmptyPrefix) {
    const std::array<std::pair<IdentityHeader, Difference>, 3> others = {
        {{{"other", "mode", 0}, Difference::kSalt},
         {{"salt", "other", 0}, Difference::kMode},
         {{"salt", "mode", 1}, Difference::kRopeDelta}}};
    for (const auto& [header, difference] : others) {
        const Verification answer = verify(prompt(), open(header, ids_), 0);
        EXPECT_EQ(answer.matched, 0);
        EXPECT_EQ(answer.difference, difference);
        EXPECT_FALSE(answer.exact);
    }
}

TEST_F(LedgerVerifierTest, TypesPositionsAndMediaDifferAtTheirToken) {
    const LedgerId ledger = open(kHeader, ids_);
    TokenSpan type = text_span(70, 70);
    type.first.type = 1;
    TokenSpan media = text_span(70, 70);
    media.first.media = MediaPiece{};
    const std::array<std::pair<TokenSpan, Difference>, 3> others = {
        {{type, Difference::kType}, {text_span(70, 71), Difference::kPosition}, {media, Difference::kMedia}}};
    for (const auto& [span, difference] : others) {
        const std::array<TokenSpan, 2> spans = {text_span(0, 0), span};
        const Verification answer = verify(prompt(spans), ledger, 71);
        EXPECT_EQ(answer.matched, 70);
        EXPECT_EQ(answer.difference, difference);
        EXPECT_FALSE(answer.exact);
        EXPECT_TRUE(verify(prompt(spans), ledger, 70).exact);
    }
}

// Every ledger is a candidate, as if all digests in the world were one.
TEST_F(LedgerVerifierTest, ACollisionOfDigestsIsNoHit) {
    std::vector<LedgerCandidate> candidates;
    for (std::size_t i = 0; i < 50; ++i) {
        auto other = ids_;
        other[i] += 1000;
        candidates.push_back({open(kHeader, other), 100});
    }
    candidates.push_back({open({"another salt", "mode", 0}, ids_), 100});
    std::vector<Verification> answers(candidates.size());
    verifier_.verify(prompt(), candidates, answers).value();
    for (const Verification& answer : answers) EXPECT_FALSE(answer.exact);
}

TEST_F(LedgerVerifierTest, BranchesOfOneHistoryAreToldApart) {
    const LedgerId whole = open(kHeader, ids_);
    std::vector<LedgerCandidate> candidates = {{whole, 200}};
    for (const std::int64_t frontier : {150, 10, 64, 100, 199}) {
        const LedgerId branch = store_.fork(whole, frontier, frontier + 1).value();
        const std::array<std::int32_t, 1> other = {-1};
        store_.append(branch, {other, {}, TokenOrigin::kOutput}).value();
        candidates.push_back({branch, frontier});
        candidates.push_back({branch, frontier + 1});
    }
    std::vector<Verification> answers(candidates.size());
    verifier_.verify(prompt(), candidates, answers).value();
    EXPECT_EQ(answers[0].matched, 200);
    for (std::size_t i = 1; i < answers.size(); i += 2) {
        EXPECT_EQ(answers[i].matched, candidates[i].frontier);
        EXPECT_TRUE(answers[i].exact);
        EXPECT_EQ(answers[i + 1].matched, candidates[i].frontier);
        EXPECT_FALSE(answers[i + 1].exact);
    }
}

TEST_F(LedgerVerifierTest, ASecondCallAllocatesNothingAndKnowsNothingOfTheFirst) {
    const LedgerId whole = open(kHeader, ids_);
    const LedgerCandidate candidate{whole, 200};
    Verification answer;
    verifier_.verify(prompt(), {&candidate, 1}, {&answer, 1}).value();
    EXPECT_TRUE(answer.exact);
    ids_[5] = -1;
    const std::int64_t before = testing_support::allocations();
    verifier_.verify(prompt(), {&candidate, 1}, {&answer, 1}).value();
    EXPECT_EQ(testing_support::allocations(), before);
    EXPECT_EQ(answer.matched, 5);
}

TEST_F(LedgerVerifierTest, OneBadCandidateRefusesTheCallAndAnswersNothing) {
    const LedgerId whole = open(kHeader, ids_);
    const LedgerId gone = store_.fork(whole, 10, 10).value();
    store_.release(gone).value();
    std::array<Verification, 2> answers = {Verification{42}, Verification{42}};
    const std::array<LedgerCandidate, 2> stale = {LedgerCandidate{whole, 1}, LedgerCandidate{gone, 1}};
    const auto refused = verifier_.verify(prompt(), stale, answers);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().kind, RefusalKind::kStaleHandle);
    const std::array<LedgerCandidate, 2> beyond = {LedgerCandidate{whole, 1}, LedgerCandidate{whole, 201}};
    const auto second = verifier_.verify(prompt(), beyond, answers);
    ASSERT_FALSE(second.has_value());
    EXPECT_EQ(second.error().message(), "beyond_frontier: wanted 201, found 200");
    EXPECT_EQ(answers[0].matched, 42);
}

}  // namespace
}  // namespace ninfer
