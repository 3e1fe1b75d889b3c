// Captures and finishes that need room: planned like admissions, skipped or discarded where that is not worth it.

#include "tests/cpp/program/planning_fixture.h"

namespace ninfer {
namespace {

using testing_support::ContextWorld;
using testing_support::PlanningTest;

class CapturePlanTest : public PlanningTest {
   protected:
    // All checkpoint slots are taken by idle endpoints; a sequence has computed 100 of its tokens.
    void build_full(std::int64_t host_pages) {
        build({.pages = 16, .checkpoint_slots = 2, .host_pages = host_pages});
        for (auto& endpoint : idle_) endpoint = world().endpoint(world().make_tokens(70));
        sequence_ = world().open(256, 1);
        world().compute(sequence_, world().make_tokens(100));
    }
    Publication capture_on(Tier tier, bool own = true) {
        return CapturePublication{sequence_, {CheckpointKind::kLongAnchor, tier, own}};
    }
    Publication finish_on(Tier tier) { return FinishPublication{sequence_, {CheckpointKind::kSessionEndpoint, tier}}; }

    std::array<CheckpointHandle, 2> idle_;
    SequenceHandle sequence_;
};

TEST_F(CapturePlanTest, ACaptureDisplacesAnIdleImage) {
    build_full(8);
    const auto identity = ask(capture_on(Tier::kDevice));
    expect_status(assess(identity), TargetStatus::kTemporarilyBlocked, RefusalKind::kNoImageSlots);
    EXPECT_EQ(assess(identity).residual.image_slots_checkpoint, 1);
    // To skip it is to do nothing. To keep everything: one image leaves the device.
    const auto target = degrade(identity, {step(DegradationKind::kImageToHost, idle_[0])});
    expect_status(assess(target), TargetStatus::kNeedsTransfer);
    const auto result = commit(target);
    ASSERT_TRUE(world().is_there(result.captured));
    EXPECT_FALSE(result.skipped.has_value());
    EXPECT_TRUE(result.removed.empty());
    EXPECT_EQ(state().owners.find(result.captured).value()->frontier, 100);
    EXPECT_EQ(world().owner_of(result.captured), state().sequences.at(sequence_).owner);
    world().settle();  // the writer's copy of the tail
    world().compute(sequence_, world().make_tokens(20));
    world().expect_all_bytes();
    close(sequence_);
}

TEST_F(CapturePlanTest, ASequenceThatWentOnMeanwhileIsNotCaptured) {
    build_full(8);
    const auto target = degrade(ask(capture_on(Tier::kDevice)), {step(DegradationKind::kImageToHost, idle_[0])});
    ASSERT_FALSE(must(start_transaction(state(), must(session().seal(target)), {})).has_value());
    world().compute(sequence_, world().make_tokens(1));
    std::optional<ResourceResult> ended;
    while (!ended) ended = step_once();
    EXPECT_EQ(to_string(ended->end), "committed");
    EXPECT_EQ(ended->captured, CheckpointHandle{});
    ASSERT_TRUE(ended->skipped.has_value());
    EXPECT_EQ(ended->skipped->message(), (Refusal{RefusalKind::kBackwards, 100, 101}).message());
    EXPECT_TRUE(ended->changed) << "what was moved stays moved";
    // Before the start it is told at once.
    const auto again = degrade(ask(capture_on(Tier::kDevice)), {evict(idle_[1])});
    ContextPlan plan = must(session().seal(again));
    world().compute(sequence_, world().make_tokens(1));
    expect_refused([&] { return start_transaction(state(), std::move(plan), {}); }, RefusalKind::kStaleRevision);
    close(sequence_);
}

// What a finish is refused for at the commit, its plan is skipped for.
TEST_F(CapturePlanTest, ASkippedFinishSaysWhatItWasRefusedFor) {
    build_full(8);
    const auto target = degrade(ask(finish_on(Tier::kDevice)), {step(DegradationKind::kImageToHost, idle_[0])});
    ASSERT_FALSE(must(start_transaction(state(), must(session().seal(target)), {})).has_value());
    state().sequences.at(sequence_).copy_failed = true;
    std::optional<ResourceResult> ended;
    while (!ended) ended = step_once();
    EXPECT_EQ(ended->finished, OwnerHandle{});
    ASSERT_TRUE(ended->skipped.has_value());
    EXPECT_EQ(to_string(ended->skipped->kind), "copy_failed");
    close(sequence_);
}

TEST_F(CapturePlanTest, AnImageGoesToHostWithoutADeviceSlot) {
    build_full(8);
    const auto target = ask(capture_on(Tier::kHost, false));
    const auto assessed = assess(target);
    expect_status(assessed, TargetStatus::kReady);
    EXPECT_EQ(assessed.peak.host_blocks, 2);
    const auto result = commit(target);
    EXPECT_EQ(world().owner_of(result.captured) == state().sequences.at(sequence_).owner, false);
    // Its copies are a transition of their own: nothing starts before they have ended.
    expect_status(assess(ask(root(64))), TargetStatus::kTemporarilyBlocked, RefusalKind::kCopyInFlight);
    world().settle();
    expect_status(assess(ask(root(64))), TargetStatus::kReady);
    EXPECT_TRUE(state().owners.find(result.captured).value()->image != ImageId{});
    close(sequence_);
}

TEST_F(CapturePlanTest, AFinishKeepsItsEndpointOnDeviceOnHostOrIsADiscard) {
    build_full(2);  // room for one image
    const auto displaced = degrade(ask(finish_on(Tier::kDevice)), {step(DegradationKind::kImageToHost, idle_[0])});
    const auto first = commit(displaced);
    ASSERT_TRUE(state().owners.find(first.finished).has_value());
    EXPECT_EQ(state().sequences.lanes_open(), 0);

    sequence_ = world().open(128);
    world().compute(sequence_, world().make_tokens(128));
    const auto full = ask(finish_on(Tier::kHost));
    expect_status(assess(full), TargetStatus::kTemporarilyBlocked, RefusalKind::kNoHostBlocks);
    // No retention is legal without a loss: the sequence is discarded.
    close(sequence_);

    sequence_ = world().open(128);
    world().compute(sequence_, world().make_tokens(128));
    const auto second = commit(degrade(ask(finish_on(Tier::kHost)), {evict(idle_[0])}));
    world().settle();
    const auto endpoint = state().owners.find(second.finished).value()->checkpoints.back();
    const StateImage& image = *state().stores.images().find(state().owners.find(endpoint).value()->image).value();
    EXPECT_TRUE(image.on_host());
    EXPECT_FALSE(image.on_device());
    world().expect_all_bytes();
}

// What a capture copies itself is told beforehand: the image that goes to Host, and the tail that stays with it.
TEST_F(CapturePlanTest, ItsOwnCopiesAreAssessed) {
    const auto page = static_cast<std::int64_t>(World::kPageBytes);
    const auto image = static_cast<std::int64_t>(World::kImageBytes);
    for (const std::int64_t tokens : {100, 128})
        for (const auto tier : {Tier::kDevice, Tier::kHost})
            for (const bool ends : {false, true}) {
                build({.pages = 16, .checkpoint_slots = 2, .host_pages = 8});
                sequence_ = world().open(256, 1);
                world().compute(sequence_, world().make_tokens(tokens));
                const auto target = ask(ends ? finish_on(tier) : capture_on(tier));
                const auto assessed = assess(target);
                const std::int64_t tails = !ends && tokens == 100 ? 1 : 0;
                const std::int64_t images = tier == Tier::kHost ? 1 : 0;
                EXPECT_EQ(assessed.own_within_device, (CopyWork{tails, tails * page}));
                EXPECT_EQ(assessed.own_to_host, (CopyWork{images, images * image}));
                commit(target);
                EXPECT_EQ(std::ssize(state().jobs), tails + images);
                world().settle();
                if (!ends) close(sequence_);
            }
}

TEST_F(CapturePlanTest, WhatNeedsNoStageNeedNotWaitForAFork) {
    build({.pages = 16, .checkpoint_slots = 2});
    sequence_ = world().open(256, 1);
    world().compute(sequence_, world().make_tokens(128));
    const auto captured = commit(ask(capture_on(Tier::kDevice))).captured;
    // The sequence reads the captured image until its next unit: others wait for that, its own end does not.
    expect_status(assess(ask(root(64))), TargetStatus::kTemporarilyBlocked, RefusalKind::kUnsettled);
    const auto finished = commit(ask(finish_on(Tier::kDevice))).finished;
    EXPECT_EQ(world().owner_of(captured), finished);
    EXPECT_EQ(world().used().image_slots_checkpoint, 1) << "both are the same image";
    expect_status(assess(ask(root(64))), TargetStatus::kReady);
}

TEST_F(CapturePlanTest, InactiveOwnersAreMovedWithoutAnyPublication) {
    build_full(8);
    const Publication nothing = NoPublication{};
    const auto identity = ask(nothing);
    expect_status(assess(identity), TargetStatus::kReady);
    EXPECT_FALSE(commit(identity).changed);
    const auto result = commit(degrade(
        ask(nothing), {pages_to_host(idle_[0]), step(DegradationKind::kImageToHost, idle_[0]), remove(idle_[1])}));
    EXPECT_EQ(result.removed, std::vector{idle_[1]});
    EXPECT_EQ(result.owners_gone.size(), 1U);
    EXPECT_EQ(result.placements[0].placement.pages_on_device, 0);
    close(sequence_);
}

}  // namespace
}  // namespace ninfer
