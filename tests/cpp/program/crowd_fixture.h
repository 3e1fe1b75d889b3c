#pragma once

// A small world that is full, and one admission into it that needs everything.

#include "tests/cpp/program/planning_fixture.h"

namespace ninfer::testing_support {

// One admission that needs everything: a victim is evicted, another one leaves the device, the source's pages and image
// come from Host, and its tail is copied.
class CrowdTest : public PlanningTest {
   protected:
    void build_crowd() {
        build({.pages = 12, .checkpoint_slots = 4, .host_pages = 12});
        text_ = world().make_tokens(150);
        source_ = world().endpoint(text_);
        to_host(source_);
        demoted_ = world().endpoint(world().make_tokens(256));
        evicted_ = world().endpoint(world().make_tokens(140));
        before_ = world().used();
    }
    // The same, but the source is the first of three checkpoints of its owner.
    void build_conversation() {
        build({.pages = 12, .checkpoint_slots = 4, .host_pages = 12});
        text_ = world().make_tokens(150);
        const auto sequence = world().open(270, 2);
        world().compute(sequence, text_);
        source_ = must(capture(state(), sequence, {}));
        world().settle();
        world().compute(sequence, world().make_tokens(60));
        deeper_ = {must(capture(state(), sequence, {}))};
        world().settle();
        deeper_.push_back(world().endpoint_of(sequence, world().make_tokens(60)));
        to_host(source_);
        demoted_ = world().endpoint(world().make_tokens(256));
        evicted_ = world().endpoint(world().make_tokens(140));
        before_ = world().used();
    }
    // What is deeper than the source goes with the releases, and nothing comes back; the owner is as inactive as before.
    void expect_takeover_aborted(const ResourceResult& result, bool released) {
        std::set<std::uint64_t> gone;
        for (const CheckpointHandle checkpoint : result.removed) gone.insert(checkpoint.value);
        EXPECT_EQ(gone.size(), result.removed.size());
        std::set<std::uint64_t> expected;
        if (released) expected = {evicted_.value, deeper_[0].value, deeper_[1].value};
        EXPECT_EQ(gone, expected);
        EXPECT_EQ(result.owners_gone.size(), released ? 1U : 0U);  // of the evicted one
        const Owner& owner = *must(state().owners.find(world().owner_of(source_)));
        EXPECT_EQ(owner.role, OwnerRole::kPrivate);
        EXPECT_EQ(owner.checkpoints.size(), released ? 1U : 3U);
        EXPECT_EQ(owner.checkpoints.front(), source_);
        EXPECT_EQ(world().tokens_of(source_), text_);
        EXPECT_EQ(std::ranges::count(result.placements, source_, &CheckpointPlacement::checkpoint), 1);
    }
    void to_host(CheckpointHandle checkpoint) {
        must(start_copy(state(), checkpoint, Tier::kHost));
        world().settle();
        must(drop(state(), checkpoint, Tier::kDevice));
    }
    TargetId ask_all(SourceUse use) {
        const Tokens prompt = World::joined(text_, world().make_tokens(10));
        const auto found = candidates(prompt, {{source_, use}});
        const auto identity = ask(admission(found.back(), 64 * 9));
        return degrade(identity, {pages_to_host(demoted_), evict(evicted_)});
    }
    ContextPlan seal_all(SourceUse use) { return must(session().seal(ask_all(use))); }
    // It is open then, and nothing has happened.
    void start_all(SourceUse use) {
        const auto there = checkpoints();
        const auto used = world().used();
        const auto ended = must(start_transaction(state(), seal_all(use), {}));
        EXPECT_FALSE(ended.has_value());
        EXPECT_EQ(state().transaction->running->phase(), TransactionPhase::kHostReleases);
        EXPECT_EQ(checkpoints(), there);
        EXPECT_EQ(world().used(), used);
    }
    // To where the copies of this round are on their way.
    void go_on_to(CopyRound round) {
        const RunningTransaction& running = *state().transaction->running;
        while (running.round() != round || running.phase() != TransactionPhase::kCopiesInFlight)
            EXPECT_FALSE(step_once().has_value());
    }
    ResourceResult until_ended() {
        while (true)
            if (auto ended = step_once()) return *ended;
    }
    // After an abort: the source is as good as before, nothing is half there, and the same target can be reached again.
    void expect_aborted(const ResourceResult& result, const std::set<std::uint64_t>& there, std::uint64_t revision) {
        world().expect_all_bytes();
        EXPECT_EQ(result.sequence, SequenceHandle{});
        EXPECT_EQ(state().sequences.lanes_open(), 0);
        EXPECT_EQ(state().resource_revision, revision + (result.changed ? 1 : 0));
        ASSERT_TRUE(world().is_there(source_));
        auto expected = there;
        for (const CheckpointHandle gone : result.removed) EXPECT_EQ(expected.erase(gone.value), 1U);
        EXPECT_EQ(checkpoints(), expected);
        EXPECT_EQ(state().stores.copies().open_copies() + state().stores.copies().draining_copies(), 0);
        EXPECT_EQ(result.used, world().used());
        if (!result.changed) {
            EXPECT_EQ(result.used, before_);
        }
        const Tokens prompt = World::joined(text_, world().make_tokens(10));
        const auto found = candidates(prompt, {{source_, SourceUse::kConsume}});
        ask(admission(found.back(), 64 * 9));
        const auto again = commit(must(session().maximal(0)));
        world().compute(again.sequence, world().make_tokens(10));
        close(again.sequence);
        EXPECT_EQ(world().used(), ResourceAxes{});
    }

    Tokens text_;
    CheckpointHandle source_;
    std::vector<CheckpointHandle> deeper_;
    CheckpointHandle demoted_;
    CheckpointHandle evicted_;
    ResourceAxes before_;
};

}  // namespace ninfer::testing_support
