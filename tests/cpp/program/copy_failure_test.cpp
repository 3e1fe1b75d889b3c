// Copies that fail, are cancelled, or outlive whoever wanted them: nothing is half published, sources stay whole, and
// everything comes back.

#include "cpp/program/copy_polling.h"
#include "tests/cpp/program/checkpoint_fixture.h"

namespace ninfer {
namespace {

using testing_support::CheckpointTest;

TEST_F(CheckpointTest, AForkWhoseImageFailedCanOnlyBeClosed) {
    load_hybrid();
    const auto prompt = random_tokens(64);
    const auto endpoint = endpoint_of(prompt, Tier::kHost);
    settle();
    const auto fork = open_from(endpoint, 128);
    const auto progress = moving(0, [&] { return fail_copies(); });
    EXPECT_EQ(progress.failed, 1);
    EXPECT_EQ(progress.open, 0);
    const auto kind = RefusalKind::kCopyFailed;
    expect_refused([&] { return program_->append(fork, random_tokens(1), TokenOrigin::kPrompt); }, kind, 1, 0);
    expect_refused([&] { return program_->prefill(fork, 1); }, kind, 1, 0);
    expect_refused([&] { return program_->finish_prefill({fork, {}}); }, kind, 1, 0);
    expect_refused([&] { return program_->decode(std::array{RowRequest{fork, {}}}); }, kind, 1, 0);
    expect_refused([&] { return program_->capture(fork, {}); }, kind, 1, 0);
    expect_refused([&] { return program_->capture_shape(fork); }, kind, 1, 0);
    expect_refused([&] { return program_->finish(fork, {}); }, kind, 1, 0);
    ok(moving(1, [&] { return program_->close_sequence(fork); }));
    const auto again = open_from(endpoint, 128);
    settle();
    expect_continues(again, prompt, random_tokens(5));
    ok(program_->close_sequence(again));
    ok(program_->delete_checkpoint(endpoint));
    expect_idle();
}

TEST_F(CheckpointTest, ASourceIsNeverLostToAFailedCopy) {
    load_hybrid();
    const auto prompt = random_tokens(200);
    const auto sequence = open_root(200, 1);
    compute(sequence, first_of(prompt, 70));
    const auto shallow = ok(program_->capture(sequence, {}));
    settle();
    compute(sequence, {prompt.begin() + 70, prompt.begin() + 130});
    const auto owner = ok(program_->finish(sequence, {CheckpointKind::kSessionEndpoint, Tier::kHost}));
    settle();
    const auto endpoint = ok(program_->owner(owner)).checkpoints.back();
    for (const auto use : {SourceUse::kConsume, SourceUse::kContinue})
        expect_refused([&] { return program_->open_from({endpoint, use, {}}, {.tokens = 200}); },
                       RefusalKind::kNotOnDevice, 1, 0);
    ok(program_->start_copy(endpoint, Tier::kDevice));
    fail_copies();
    EXPECT_EQ(ok(program_->owner(owner)).checkpoints, (std::vector{shallow, endpoint}));
    ok(program_->start_copy(endpoint, Tier::kDevice));
    settle();
    const auto moved = open_from(endpoint, 200, SourceUse::kConsume);
    expect_continues(moved, first_of(prompt, 130), random_tokens(5));
}

// An anchor at 64 and an endpoint at `tokens`, in one private owner.
struct Conversation {
    OwnerHandle owner;
    CheckpointHandle anchor;
    CheckpointHandle endpoint;
};

class TakeoverTest : public CheckpointTest {
   protected:
    Conversation converse(const Tokens& tokens) {
        const auto sequence = open_root(std::ssize(tokens));
        compute(sequence, first_of(tokens, 64));
        Conversation made;
        made.anchor = ok(program_->capture(sequence, {CheckpointKind::kTurnClosure}));
        compute(sequence, {tokens.begin() + 64, tokens.end()});
        made.owner = ok(program_->finish(sequence, {CheckpointKind::kResponseReplay}));
        made.endpoint = ok(program_->owner(made.owner)).checkpoints.back();
        return made;
    }
    // The owner is private and ends with a checkpoint of those tokens, from which one can go on.
    void expect_back(OwnerHandle owner, const Tokens& tokens, std::size_t checkpoints) {
        settle();
        const auto summary = ok(program_->owner(owner));
        EXPECT_EQ(to_string(summary.role), "private");
        ASSERT_EQ(summary.checkpoints.size(), checkpoints);
        const auto endpoint = ok(program_->checkpoint(summary.checkpoints.back()));
        EXPECT_EQ(endpoint.frontier, std::ssize(tokens));
        EXPECT_EQ(to_string(endpoint.kind), "response_replay");
        EXPECT_TRUE(endpoint.device_ready);
        const auto fork = open_from(summary.checkpoints.back(), std::ssize(tokens) + 5);
        settle();
        expect_continues(fork, tokens, random_tokens(5));
        ok(program_->close_sequence(fork));
        ok(program_->release_owner(owner));
        expect_idle();
    }
};

TEST_F(TakeoverTest, ASequenceThatHasNotComputedGivesItsOwnerBack) {
    for (const std::int64_t length : {128, 150})
        for (const auto use : {SourceUse::kConsume, SourceUse::kContinue}) {
            load_hybrid();
            const auto tokens = random_tokens(length);
            const auto made = converse(tokens);
            const auto sequence = open_from(made.endpoint, 256, use);
            settle();
            ok(program_->append(sequence, random_tokens(3), TokenOrigin::kPrompt));
            EXPECT_EQ(to_string(ok(program_->owner(made.owner)).role), "active");
            ok(moving(1, [&] { return program_->close_sequence(sequence); }));
            EXPECT_EQ(program_->checkpoint(made.endpoint).has_value(), use == SourceUse::kContinue);
            EXPECT_TRUE(program_->checkpoint(made.anchor).has_value());
            expect_back(made.owner, tokens, 2);
        }
}

TEST_F(TakeoverTest, ASequenceThatHasComputedTakesItsOwnerWithIt) {
    load_hybrid();
    const auto made = converse(random_tokens(150));
    const auto sequence = open_from(made.endpoint, 256, SourceUse::kConsume);
    compute(sequence, random_tokens(1));
    ok(program_->close_sequence(sequence));
    EXPECT_FALSE(program_->owner(made.owner).has_value());
    expect_idle();
}

// A source that is cut within a page is whole until the copy of its tail is there, however often that fails.
TEST_F(TakeoverTest, AConsumedSourceOutlivesTheCopyOfItsTail) {
    for (const bool fails : {true, false}) {
        load(false);
        const auto tokens = random_tokens(150);
        const auto made = converse(tokens);
        const auto sequence = ok(program_->open_from({made.endpoint, SourceUse::kConsume, 100}, {.tokens = 256}));
        if (fails) moving(0, [&] { return fail_copies(); });
        ok(moving(1, [&] { return program_->close_sequence(sequence); }));
        expect_back(made.owner, tokens, 2);
    }
}

TEST_F(TakeoverTest, ACutSourceIsGivenBackAsFarAsItIsThere) {
    load(false);
    const auto tokens = random_tokens(150);
    const auto made = converse(tokens);
    const auto sequence = ok(program_->open_from({made.endpoint, SourceUse::kConsume, 100}, {.tokens = 256}));
    EXPECT_EQ(program_->statistics().used.device_pages, 4);
    settle();
    EXPECT_EQ(program_->statistics().used.device_pages, 2);
    ok(program_->close_sequence(sequence));
    expect_back(made.owner, first_of(tokens, 100), 2);
}

// An anchor is taken at the very start, and its tail is the one that was consumed.
TEST_F(TakeoverTest, ACaptureAtTheStartDoesNotTakeTheSourceAway) {
    for (const bool own : {true, false})
        for (const bool settles : {true, false}) {
            load_hybrid();
            const auto tokens = random_tokens(150);
            const auto made = converse(tokens);
            const auto sequence = ok(program_->open_from({made.endpoint, SourceUse::kConsume, {}}, {256, false, 1}));
            const auto captured = ok(program_->capture(sequence, {CheckpointKind::kLongAnchor, Tier::kDevice, own}));
            if (settles) settle();
            ok(moving(1, [&] { return program_->close_sequence(sequence); }));
            settle();
            ok(program_->delete_checkpoint(captured));
            expect_back(made.owner, tokens, 2);
        }
}

TEST_F(TakeoverTest, AnImageWithoutASlotIsNotGivenBack) {
    load_hybrid();
    const auto made = converse(random_tokens(150));
    const auto sequence = open_from(made.endpoint, 256, SourceUse::kConsume);
    const auto other = open_root(64 * kCheckpointSlots);
    for (std::int64_t i = 1; i < kCheckpointSlots; ++i) {
        compute(other, random_tokens(64));
        ok(program_->capture(other, {}));
    }
    ok(program_->close_sequence(sequence));
    EXPECT_FALSE(program_->owner(made.owner).has_value());
    ok(program_->close_sequence(other));
    expect_idle();
}

TEST_F(CheckpointTest, WhatIsCondemnedGoesWithTheNextEnd) {
    load_hybrid();
    const auto prompt = random_tokens(64);
    const auto endpoint = endpoint_of(prompt);
    const auto reader = open_from(endpoint, 128);
    const auto mover = open_from(endpoint, 128, SourceUse::kConsume);
    compute(mover, random_tokens(1));
    EXPECT_EQ(program_->statistics().condemned, 1);  // the image, which the reader reads
    ok(program_->close_sequence(reader));
    EXPECT_EQ(program_->statistics().condemned, 0);
    EXPECT_EQ(program_->statistics().used.image_slots_checkpoint, 0);
    ok(program_->close_sequence(mover));
    expect_idle();
}

TEST_F(CheckpointTest, TheFailedTailOfAStartIsCopiedAgain) {
    for (const auto use : {SourceUse::kRetain, SourceUse::kConsume}) {
        load(false);
        const auto prompt = random_tokens(100);
        const auto endpoint = endpoint_of(prompt);
        const auto fork = ok(program_->open_from({endpoint, use, 70}, {.tokens = 128}));
        for (int attempt = 0; attempt < 3; ++attempt) {
            const auto progress = moving(0, [&] { return fail_copies(); });
            EXPECT_EQ(progress.failed, 1);
            EXPECT_EQ(progress.open, 1);
            expect_refused([&] { return program_->prefill(fork, 1); }, RefusalKind::kUnsettled, 0, 1);
        }
        settle();
        expect_continues(fork, first_of(prompt, 70), random_tokens(5));
    }
}

TEST_F(CheckpointTest, ACaptureWhoseTailFailedCostsItsSequenceNothing) {
    load_hybrid();
    const auto prompt = random_tokens(100);
    const auto sequence = open_root(192, 2);
    compute(sequence, prompt);
    const auto shared = ok(program_->capture(sequence, {CheckpointKind::kLongAnchor, Tier::kDevice, false}));
    EXPECT_EQ(moving(0, [&] { return fail_copies(); }).open, 1);
    expect_refused([&] { return program_->prefill(sequence, 1); }, RefusalKind::kUnsettled, 0, 1);
    expect_refused([&] { return program_->delete_checkpoint(shared); }, RefusalKind::kPinned, 0, 2);
    settle();
    expect_continues(sequence, prompt, random_tokens(9));
    const auto fork = open_from(shared, 128);
    settle();
    expect_continues(fork, prompt, random_tokens(5));
    // One that is closed while its tail fails again and again is gone all the same.
    ok(program_->capture(sequence, {}));
    fail_copies();
    ok(program_->close_sequence(sequence));
    ok(program_->close_sequence(fork));
    settle();
    ok(program_->delete_checkpoint(shared));
    expect_idle();
}

TEST_F(CheckpointTest, AFailedTransferLeavesTheCheckpointWhereItWas) {
    load_hybrid();
    const auto prompt = random_tokens(100);
    const auto endpoint = endpoint_of(prompt);
    const auto used = program_->statistics().used;
    ok(program_->start_copy(endpoint, Tier::kHost));
    EXPECT_LT(used.host_blocks, program_->statistics().used.host_blocks);
    const auto progress = moving(0, [&] { return fail_copies(); });
    EXPECT_EQ(progress.failed, 3);
    EXPECT_EQ(program_->statistics().used, used);
    move_to(endpoint, Tier::kHost);
    const auto on_host = program_->statistics().used;
    ok(program_->start_copy(endpoint, Tier::kDevice));
    fail_copies();
    EXPECT_EQ(program_->statistics().used, on_host);
    move_to(endpoint, Tier::kDevice);
    const auto fork = open_from(endpoint, 128);
    settle();
    expect_continues(fork, prompt, random_tokens(5));
}

TEST_F(CheckpointTest, CancelledCopiesHoldTheirDestinationsUntilTheEngineHasLetGo) {
    load_hybrid();
    const auto endpoint = endpoint_of(random_tokens(100));
    const auto used = program_->statistics().used;
    ok(program_->start_copy(endpoint, Tier::kHost));
    EXPECT_EQ(ok(moving(0, [&] { return program_->cancel_copies(endpoint); })), 3);
    EXPECT_EQ(ok(program_->cancel_copies(endpoint)), 0);
    EXPECT_EQ(program_->statistics().copies_draining, 3);
    EXPECT_LT(used.host_blocks, program_->statistics().used.host_blocks);
    expect_refused([&] { return program_->delete_checkpoint(endpoint); }, RefusalKind::kPinned, 0, 2);
    expect_refused([&] { return program_->start_copy(endpoint, Tier::kHost); }, RefusalKind::kCopyInFlight, 0, 3);
    EXPECT_EQ(moving(1, [&] { return settle(); }).published, 0);
    EXPECT_EQ(program_->statistics().used, used);
    ok(program_->delete_checkpoint(endpoint));
    expect_idle();
}

TEST_F(CheckpointTest, AClosedSequenceComesBackWhenItsCopiesHaveDrained) {
    load_hybrid();
    const auto prompt = random_tokens(100);
    const auto endpoint = endpoint_of(prompt, Tier::kHost);
    settle();
    const auto fork = open_from(endpoint, 128);  // waits for its tail and its image
    EXPECT_EQ(program_->find(fork).value()->waits, 2);
    ok(moving(1, [&] { return program_->close_sequence(fork); }));
    EXPECT_EQ(program_->statistics().condemned, 1);
    EXPECT_EQ(program_->statistics().lanes_open, 0);
    EXPECT_EQ(program_->statistics().used.image_slots_active, 1);
    expect_refused([&] { return program_->delete_checkpoint(endpoint); }, RefusalKind::kPinned, 0, 2);
    moving(1, [&] { return settle(); });
    EXPECT_EQ(program_->statistics().used.image_slots_active, 0);
    ok(program_->delete_checkpoint(endpoint));

    // A capture of its own whose tail is being read goes later, too.
    const auto sequence = open_root(128, 1);
    compute(sequence, prompt);
    ok(program_->capture(sequence, {}));
    ok(moving(1, [&] { return program_->close_sequence(sequence); }));
    settle();
    expect_idle();
}

TEST_F(CheckpointTest, ASharedCaptureOutlivesTheSequenceWhoseImageIsBeingCopied) {
    load_hybrid();
    const auto prompt = random_tokens(64);
    const auto sequence = open_root(128);
    compute(sequence, prompt);
    const auto shared = ok(program_->capture(sequence, {CheckpointKind::kSharedStablePrefix, Tier::kHost, false}));
    ok(program_->close_sequence(sequence));
    EXPECT_EQ(program_->statistics().used.image_slots_active, 1);
    settle();
    EXPECT_EQ(program_->statistics().used.image_slots_active, 0);
    const auto fork = open_from(shared, 128);
    settle();
    expect_continues(fork, prompt, random_tokens(5));
}

TEST_F(CheckpointTest, AnOwnCaptureGoesWithItsSequenceWhileItsImageIsBeingCopied) {
    load_hybrid();
    const auto sequence = open_root(128);
    compute(sequence, random_tokens(64));
    ok(program_->capture(sequence, {CheckpointKind::kLongAnchor, Tier::kHost}));
    ok(moving(1, [&] { return program_->close_sequence(sequence); }));
    settle();
    expect_idle();
}

TEST_F(CheckpointTest, ACheckpointWhoseImageCouldNotBeCopiedIsRemoved) {
    load_hybrid();
    const auto prompt = random_tokens(64);
    const auto sequence = open_root(128);
    compute(sequence, prompt);
    const auto captured = ok(program_->capture(sequence, {CheckpointKind::kLongAnchor, Tier::kHost}));
    EXPECT_EQ(fail_copies().removed, std::vector{captured});
    EXPECT_FALSE(program_->checkpoint(captured).has_value());
    expect_continues(sequence, prompt, random_tokens(5));

    const auto owner = ok(program_->finish(sequence, {CheckpointKind::kSessionEndpoint, Tier::kHost}));
    const auto endpoint = ok(program_->owner(owner)).checkpoints.back();
    EXPECT_EQ(ok(program_->cancel_copies(endpoint)), 1);
    EXPECT_FALSE(program_->owner(owner).has_value());
}

TEST_F(CheckpointTest, ACancelledSnapshotHoldsItsWriterUntilTheEngineHasLetGo) {
    load_hybrid();
    const auto prompt = random_tokens(64);
    const auto sequence = open_root(128);
    compute(sequence, prompt);
    const auto captured = ok(program_->capture(sequence, {CheckpointKind::kLongAnchor, Tier::kHost}));
    EXPECT_EQ(ok(program_->cancel_copies(captured)), 1);
    EXPECT_FALSE(program_->checkpoint(captured).has_value());
    expect_refused([&] { return program_->prefill(sequence, 1); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return program_->capture(sequence, {}); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return program_->finish(sequence, {}); }, RefusalKind::kCopyInFlight, 0, 1);
    settle();
    expect_continues(sequence, prompt, random_tokens(3));
}

TEST_F(CheckpointTest, AProgramEndsWithCopiesOpen) {
    load_hybrid();
    const auto endpoint = endpoint_of(random_tokens(100));
    open_from(endpoint, 128);
    ok(program_->start_copy(endpoint, Tier::kHost));
    ok(program_->cancel_copies(endpoint));
    engine_->complete_all();
}

}  // namespace
}  // namespace ninfer
