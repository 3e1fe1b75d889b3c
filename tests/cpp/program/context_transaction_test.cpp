// Transitions of a program's resources: refused before anything happens, or carried out, cancelled and failed at every
// phase, with the owner table telling the truth all the time.

#include "cpp/program/backfill_proof.h"
#include "tests/cpp/program/crowd_fixture.h"

namespace ninfer {
namespace {

using testing_support::ContextWorld;
using testing_support::Tokens;
using ContextTransactionTest = testing_support::CrowdTest;

TEST_F(ContextTransactionTest, EverythingAtOnceGoesAsAssessed) {
    for (const auto use : {SourceUse::kRetain, SourceUse::kConsume}) {
        build_crowd();
        const auto target = ask_all(use);
        const auto assessed = assess(target);
        EXPECT_EQ(assessed.to_host.operations, 4);
        EXPECT_EQ(assessed.to_device.operations, 4);  // three pages and the image
        EXPECT_EQ(assessed.within_device.operations, use == SourceUse::kRetain ? 1 : 0);
        const auto result = commit(target);
        EXPECT_EQ(result.removed.size(), use == SourceUse::kRetain ? 1U : 2U);
        EXPECT_EQ(world().tokens_of(result.sequence), text_);
        world().compute(result.sequence, world().make_tokens(10));
        world().expect_all_bytes();
        close(result.sequence);
    }
}

TEST_F(ContextTransactionTest, CancellationTakesEffectAtEveryPhase) {
    std::set<std::string> phases;
    for (const auto use : {SourceUse::kRetain, SourceUse::kConsume})
        for (int steps = 0;; ++steps) {
            build_crowd();
            start_all(use);
            const auto there = checkpoints();
            const std::uint64_t revision = state().resource_revision;
            std::optional<ResourceResult> ended;
            for (int i = 0; i < steps && !ended; ++i) ended = step_once();
            if (ended) break;  // cancelled before every step
            phases.insert(std::string(to_string(state().transaction->running->phase())) + " of " +
                          std::string(to_string(state().transaction->running->round())));
            EXPECT_TRUE(cancel_transaction(state()));
            const auto result = until_ended();
            EXPECT_EQ(to_string(result.end), "cancelled");
            EXPECT_EQ(result.removed.empty(), steps == 0);
            expect_aborted(result, there, revision);
        }
    // Releases come once; preparation, flight and publication three times.
    EXPECT_EQ(phases.size(), 10U);
}

// Whoever drives it stops at every boundary, and is told where going on is of no use before a poll.
TEST_F(ContextTransactionTest, EachAdvanceIsOnePhase) {
    build_crowd();
    start_all(SourceUse::kRetain);
    const RunningTransaction& running = *state().transaction->running;
    const auto expect_advance = [&](TransactionPhase phase, bool waits) {
        EXPECT_FALSE(advance_transaction(state()).has_value());
        EXPECT_EQ(to_string(running.phase()), to_string(phase));
        EXPECT_EQ(transaction_waits(state()), waits);
    };
    EXPECT_FALSE(transaction_waits(state()));
    expect_advance(TransactionPhase::kCopyPreparation, false);
    EXPECT_FALSE(world().is_there(evicted_));
    expect_advance(TransactionPhase::kCopiesInFlight, false);
    expect_advance(TransactionPhase::kCopiesInFlight, true);
    world().settle();
    expect_advance(TransactionPhase::kCopyPublication, false);
    expect_advance(TransactionPhase::kCopyPreparation, false);
    EXPECT_EQ(running.round(), CopyRound::kRestore);
    expect_advance(TransactionPhase::kCopiesInFlight, false);
    EXPECT_TRUE(cancel_transaction(state()));
    expect_advance(TransactionPhase::kDraining, true);
    world().settle();
    until_ended();
    EXPECT_FALSE(transaction_waits(state()));
}

TEST_F(ContextTransactionTest, AFailedCopyOfEveryRoundAborts) {
    std::set<CopyRound> failed;
    for (const auto round : {CopyRound::kDemotion, CopyRound::kRestore, CopyRound::kActivation})
        for (std::size_t which = 0; which < 4; ++which) {
            build_crowd();
            const auto there = checkpoints();
            const std::uint64_t revision = state().resource_revision;
            start_all(SourceUse::kRetain);
            go_on_to(round);
            const auto open = static_cast<std::size_t>(state().transaction->running->open_copies());
            if (which >= open) {
                cancel_transaction(state());
                until_ended();
                continue;
            }
            world().engine->fail_pending(which);
            world().poll();
            const auto result = until_ended();
            EXPECT_EQ(to_string(result.end), "copy_failed");
            EXPECT_EQ(result.removed, std::vector{evicted_});
            for (const auto& [checkpoint, placement] : result.placements) {
                if (checkpoint == demoted_) {
                    EXPECT_EQ(placement.pages_on_device, round == CopyRound::kDemotion ? 4 : 0);
                }
            }
            expect_aborted(result, there, revision);
            failed.insert(round);
        }
    EXPECT_EQ(failed.size(), 3U);
}

TEST_F(ContextTransactionTest, ACancelledTakeoverNamesWhatItHasCostAtEveryPhase) {
    for (const auto use : {SourceUse::kConsume, SourceUse::kContinue})
        for (int steps = 0;; ++steps) {
            build_conversation();
            start_all(use);
            const auto there = checkpoints();
            const std::uint64_t revision = state().resource_revision;
            std::optional<ResourceResult> ended;
            for (int i = 0; i < steps && !ended; ++i) ended = step_once();
            if (ended) {
                EXPECT_EQ(ended->removed.size(), use == SourceUse::kConsume ? 4U : 3U);
                EXPECT_EQ(steps, 10);  // releases, and three rounds of three phases
                close(ended->sequence);
                break;
            }
            EXPECT_TRUE(cancel_transaction(state()));
            const auto result = until_ended();
            EXPECT_EQ(result.changed, steps > 0);
            expect_takeover_aborted(result, steps > 0);
            expect_aborted(result, there, revision);
        }
}

TEST_F(ContextTransactionTest, ATakeoverWhoseCopyFailsNamesWhatItHasCost) {
    std::set<CopyRound> failed;
    for (const auto use : {SourceUse::kConsume, SourceUse::kContinue})
        for (const auto round : {CopyRound::kDemotion, CopyRound::kRestore, CopyRound::kActivation})
            for (std::size_t which = 0; which < 4; ++which) {
                build_conversation();
                const auto there = checkpoints();
                const std::uint64_t revision = state().resource_revision;
                start_all(use);
                go_on_to(round);
                if (which < static_cast<std::size_t>(state().transaction->running->open_copies())) {
                    world().engine->fail_pending(which);
                    failed.insert(round);
                    world().poll();
                } else {
                    cancel_transaction(state());
                }
                const auto result = until_ended();
                expect_takeover_aborted(result, true);
                expect_aborted(result, there, revision);
            }
    EXPECT_EQ(failed.size(), 3U);
}

TEST_F(ContextTransactionTest, WhileOneIsOpenNothingElseChanges) {
    build_crowd();
    const auto running = world().open(64);
    world().compute(running, world().make_tokens(10));
    const Publication other = root(64);
    ContextPlan second = must(session().seal(ask(other)));
    const auto known = ask(other);
    const Tokens prompt = ContextWorld::joined(text_, world().make_tokens(10));
    const auto found = candidates(prompt, {{source_}});
    const auto target = degrade(ask(admission(found.back(), 64 * 8)), {pages_to_host(demoted_), evict(evicted_)});
    ASSERT_FALSE(must(start_transaction(state(), must(session().seal(target)), {})).has_value());
    const auto open = RefusalKind::kTransactionOpen;
    expect_refused([&] { return start_transaction(state(), std::move(second), {}); }, open);
    expect_refused([&] { return session().open({&other, 1}, {}); }, open);
    expect_refused([&] { return session().assess(known); }, open);
    expect_refused([&] { return open_root(state(), {.tokens = 1}); }, open);
    expect_refused([&] { return open_from(state(), {demoted_}, {.tokens = 300}); }, open);
    expect_refused([&] { return capture(state(), running, {}); }, open);
    expect_refused([&] { return finish(state(), running, {}); }, open);
    expect_refused([&] { return close_sequence(state(), running); }, open);
    expect_refused([&] { return delete_checkpoint(state(), demoted_); }, open);
    expect_refused([&] { return release_owner(state(), world().owner_of(demoted_)); }, open);
    expect_refused([&] { return start_copy(state(), demoted_, Tier::kHost); }, open);
    expect_refused([&] { return drop(state(), source_, Tier::kHost); }, open);
    expect_refused([&] { return prove_backfill(state(), {}); }, open);
    // What has its own reservation goes on.
    const std::uint64_t revision = state().resource_revision;
    world().compute(running, world().make_tokens(54));
    EXPECT_EQ(state().resource_revision, revision);
    const auto result = until_ended();
    EXPECT_EQ(to_string(result.end), "committed");
    world().compute(result.sequence, world().make_tokens(10));
    close(running);
    close(result.sequence);
}

TEST_F(ContextTransactionTest, StalePlansAreRefusedWithoutATrace) {
    build_crowd();
    const auto stale = RefusalKind::kStaleRevision;
    ContextPlan plan = seal_all(SourceUse::kRetain);
    must(delete_checkpoint(state(), evicted_));
    expect_refused([&] { return start_transaction(state(), std::move(plan), {}); }, stale);
    expect_refused([&] { return session().identity(0); }, stale);

    // Somebody who reads the image that would go, or the pages: until it has computed.
    const auto next = ask(root(64));
    ContextPlan waiting = must(session().seal(next));
    const auto fork = must(open_from(state(), {demoted_}, {.tokens = 300}));
    expect_refused([&] { return start_transaction(state(), std::move(waiting), {}); }, RefusalKind::kUnsettled);
    expect_status(assess(ask(root(64))), TargetStatus::kTemporarilyBlocked, RefusalKind::kUnsettled);
    world().compute(fork, world().make_tokens(1));
    expect_status(assess(must(session().identity(0))), TargetStatus::kReady);
    ContextPlan copying = must(session().seal(must(session().identity(0))));
    must(start_copy(state(), demoted_, Tier::kHost));
    expect_status(assess(must(session().identity(0))), TargetStatus::kTemporarilyBlocked, RefusalKind::kCopyInFlight);
    expect_refused([&] { return start_transaction(state(), std::move(copying), {}); }, RefusalKind::kCopyInFlight);
    world().settle();
    close(fork);
}

TEST_F(ContextTransactionTest, ThereIsNoPlanWithoutALane) {
    build({.pages = 16, .lanes = 2});
    const auto first = world().open(64);
    const auto second = world().open(64);
    expect_status(assess(ask(root(64))), TargetStatus::kTemporarilyBlocked, RefusalKind::kNoImageSlots);
    close(first);
    close(second);
    build({.pages = 16, .lanes = 2, .recurrent = false});
    world().open(64);
    world().open(64);
    const auto target = ask(root(64));
    expect_status(assess(target), TargetStatus::kTemporarilyBlocked, RefusalKind::kNoLane);
    expect_refused([&] { return session().seal(target); }, RefusalKind::kNoLane);
}

TEST_F(ContextTransactionTest, WhatEndsMeanwhileMovesNoRevisionInTheMiddle) {
    build_crowd();
    // A cancelled snapshot still reads the image of a closed sequence.
    const auto sequence = world().open(64);
    world().compute(sequence, world().make_tokens(64));
    must(capture(state(), sequence, {.image_tier = Tier::kHost}));
    close(sequence);
    EXPECT_FALSE(state().condemned.empty());
    const std::uint64_t revision = state().resource_revision;
    start_all(SourceUse::kRetain);
    world().settle();
    EXPECT_TRUE(state().condemned.empty());
    EXPECT_EQ(state().resource_revision, revision);
    EXPECT_TRUE(cancel_transaction(state()));
    EXPECT_EQ(until_ended().revision, revision + 1);
}

TEST_F(ContextTransactionTest, AStateMayEndWithATransactionOpen) {
    for (const bool copies_are_open : {false, true}) {
        build_crowd();
        start_all(SourceUse::kRetain);
        if (copies_are_open) go_on_to(CopyRound::kDemotion);
        world().engine->complete_all();
        world_.reset();  // cancels and drains it
    }
}

}  // namespace
}  // namespace ninfer
