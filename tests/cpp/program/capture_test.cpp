// Captures and finishes: what they share, freeze and copy, what they refuse, and that everybody goes on with the bits of an
// undisturbed run.

#include "cpp/program/capture.h"

#include "tests/cpp/program/checkpoint_fixture.h"

namespace ninfer {
namespace {

using testing_support::CheckpointTest;

TEST_F(CheckpointTest, EveryFrontierOfAPageIsCapturedAndBothSidesGoOn) {
    for (const bool recurrent : {true, false}) {
        load(recurrent);
        const auto prompt = random_tokens(70);
        const auto more = random_tokens(9);
        for (const std::int64_t frontier : {1, 2, 31, 63, 64, 65, 70}) {
            const auto before = first_of(prompt, frontier);
            const auto sequence = open_root(128, 1);
            compute(sequence, before);
            const auto shape = ok(program_->capture_shape(sequence));
            EXPECT_EQ(shape.copies, frontier == 64 ? 0 : 1);
            EXPECT_EQ(shape.frozen_in_place, (frontier + 63) / 64);
            const auto captured = ok(moving(1, [&] { return program_->capture(sequence, {}); }));
            if (shape.copies > 0) {
                EXPECT_EQ(program_->find(sequence).value()->waits, 1);
                expect_refused([&] { return program_->prefill(sequence, 1); }, RefusalKind::kUnsettled, 0, 1);
                expect_refused([&] { return program_->capture(sequence, {}); }, RefusalKind::kUnsettled, 0, 1);
                expect_refused([&] { return program_->finish(sequence, {}); }, RefusalKind::kUnsettled, 0, 1);
                expect_refused([&] { return program_->capture_shape(sequence); }, RefusalKind::kUnsettled, 0, 1);
            }
            const auto progress = moving(shape.copies > 0 ? 1 : 0, [&] { return settle(); });
            EXPECT_EQ(progress.published, shape.copies);
            expect_continues(sequence, before, more);

            const auto summary = ok(program_->checkpoint(captured));
            EXPECT_EQ(summary.frontier, frontier);
            EXPECT_EQ(summary.has_image, recurrent);
            EXPECT_TRUE(summary.valid && summary.device_ready);
            const auto fork = open_from(captured, 128);
            settle();
            expect_continues(fork, before, more);
            ok(program_->close_sequence(fork));
            ok(program_->close_sequence(sequence));
            expect_idle();
        }
    }
}

TEST_F(CheckpointTest, AModelWithoutAttentionHasPagesThatCountTokens) {
    auto config = testing_support::tiny_config();
    config.layer_is_recurrent = {true, true};
    load_model(config, KvStorage::kF32, manual_engine());
    const auto prompt = random_tokens(70);
    const auto endpoint = endpoint_of(prompt);
    move_to(endpoint, Tier::kHost);
    move_to(endpoint, Tier::kDevice);
    const auto fork = open_from(endpoint, 128);
    settle();
    expect_continues(fork, prompt, random_tokens(9));
}

TEST_F(CheckpointTest, ASecondCaptureSharesWhatTheFirstOneFroze) {
    load_hybrid();
    const auto prompt = random_tokens(200);
    const auto sequence = open_root(256, 2);
    compute(sequence, first_of(prompt, 130));
    ok(program_->capture(sequence, {CheckpointKind::kTurnClosure}));
    settle();
    compute(sequence, {prompt.begin() + 130, prompt.end()});
    const auto shape = ok(program_->capture_shape(sequence));
    EXPECT_EQ(shape.shared, 2);
    EXPECT_EQ(shape.frozen_in_place, 2);
    EXPECT_EQ(shape.copies, 1);
    const auto pages_before = program_->statistics().used.device_pages;
    const auto second = ok(program_->capture(sequence, {}));
    EXPECT_EQ(program_->statistics().used.device_pages, pages_before + 1);
    settle();
    const auto owner = ok(program_->owner(program_->find(sequence).value()->owner));
    EXPECT_EQ(to_string(owner.role), "active");
    ASSERT_EQ(owner.checkpoints.size(), 2U);
    EXPECT_EQ(owner.checkpoints[1], second);
    EXPECT_EQ(to_string(ok(program_->checkpoint(owner.checkpoints[0])).kind), "turn_closure");
    expect_continues(sequence, prompt, random_tokens(3));
}

TEST_F(CheckpointTest, ABorrowedImageIsSharedAndNotCopied) {
    load_hybrid();
    const auto prompt = random_tokens(64);
    const auto endpoint = endpoint_of(prompt);
    const auto sequence = open_from(endpoint, 128);
    const auto slots = program_->statistics().used.image_slots_checkpoint;
    const auto shared = ok(program_->capture(sequence, {CheckpointKind::kSharedStablePrefix, Tier::kHost, false}));
    EXPECT_EQ(program_->statistics().used.image_slots_checkpoint, slots);
    EXPECT_TRUE(ok(program_->checkpoint(shared)).device_ready);
    EXPECT_EQ(to_string(ok(program_->owner(ok(program_->checkpoint(shared)).owner)).role), "shared");
    // One of two references goes; the last one is pinned while the sequence reads it.
    ok(program_->delete_checkpoint(endpoint));
    expect_refused([&] { return program_->delete_checkpoint(shared); }, RefusalKind::kPinned, 0, 1);
    const auto more = random_tokens(5);
    expect_continues(sequence, prompt, more);
    ok(program_->delete_checkpoint(shared));
    ok(program_->close_sequence(sequence));
    expect_idle();
}

TEST_F(CheckpointTest, AnImageCapturedToHostBlocksItsWriterAndIsThereLater) {
    load_hybrid();
    const auto prompt = random_tokens(64);
    const auto sequence = open_root(192);
    compute(sequence, prompt);
    const auto captured =
        ok(moving(0, [&] { return program_->capture(sequence, {CheckpointKind::kLongAnchor, Tier::kHost}); }));
    EXPECT_FALSE(ok(program_->checkpoint(captured)).valid);
    expect_refused([&] { return program_->open_from({captured}, {.tokens = 128}); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return program_->start_copy(captured, Tier::kDevice); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return program_->drop(captured, Tier::kDevice); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return program_->delete_checkpoint(captured); }, RefusalKind::kCopyInFlight, 0, 1);
    ok(program_->append(sequence, random_tokens(2), TokenOrigin::kPrompt));
    expect_refused([&] { return program_->prefill(sequence, 1); }, RefusalKind::kCopyInFlight, 0, 1);
    moving(1, [&] { return settle(); });
    const auto summary = ok(program_->checkpoint(captured));
    EXPECT_TRUE(summary.valid && summary.image_on_host && !summary.image_on_device && !summary.device_ready);
    EXPECT_EQ(ok(program_->prefill(sequence, 1)), 1);
    // Its pages are on Device: only the image is restored.
    const auto restored = open_from(captured, 128);
    ok(program_->append(restored, random_tokens(1), TokenOrigin::kPrompt));
    expect_refused([&] { return program_->decode(std::array{RowRequest{restored, {}}}); }, RefusalKind::kUnsettled, 0,
                   1);
    ok(program_->close_sequence(restored));
    engine_->complete_all();
    poll();
    const auto again = open_from(captured, 128);
    settle();
    expect_continues(again, prompt, random_tokens(7));
}

TEST_F(CheckpointTest, FinishKeepsTheComputedTokensAndGivesTheRestBack) {
    for (const auto tier : {Tier::kDevice, Tier::kHost}) {
        load_hybrid();
        const auto prompt = random_tokens(100);
        const auto sequence = open_root(400, 2);
        compute(sequence, prompt);
        ok(program_->append(sequence, random_tokens(5), TokenOrigin::kPrompt));  // never computed
        const auto owner =
            ok(moving(1, [&] { return program_->finish(sequence, {CheckpointKind::kSessionEndpoint, tier}); }));
        EXPECT_EQ(program_->statistics().used.device_pages, 2);
        EXPECT_EQ(program_->statistics().used.device_pages_reserved, 0);
        expect_refused([&] { return program_->prefill(sequence, 1); }, RefusalKind::kStaleHandle, sequence.generation(),
                       sequence.generation());
        moving(tier == Tier::kHost ? 1 : 0, [&] { return settle(); });
        EXPECT_EQ(program_->statistics().used.image_slots_active, 0);
        const auto summary = ok(program_->owner(owner));
        EXPECT_EQ(to_string(summary.role), "private");
        const auto endpoint = summary.checkpoints.back();
        EXPECT_EQ(ok(program_->checkpoint(endpoint)).frontier, 100);
        EXPECT_EQ(ok(program_->checkpoint(endpoint)).image_on_host, tier == Tier::kHost);
        const auto next = open_from(endpoint, 200);
        settle();
        expect_continues(next, prompt, random_tokens(4));
        ok(program_->close_sequence(next));
        ok(moving(1, [&] { return program_->release_owner(owner); }));
        expect_idle();
    }
}

TEST_F(CheckpointTest, ClosingDiscardsOwnCapturesAndLeavesSharedOnes) {
    load_hybrid();
    const auto prompt = random_tokens(64);
    const auto sequence = open_root(128);
    compute(sequence, prompt);
    const auto own = ok(program_->capture(sequence, {}));
    compute(sequence, random_tokens(1));
    const auto owner = program_->find(sequence).value()->owner;
    expect_refused([&] { return program_->release_owner(owner); }, RefusalKind::kActive, 0, 1);
    compute(sequence, random_tokens(63));
    const auto shared = ok(program_->capture(sequence, {CheckpointKind::kSharedStablePrefix, Tier::kDevice, false}));
    ok(moving(1, [&] { return program_->close_sequence(sequence); }));
    expect_refused([&] { return program_->checkpoint(own); }, RefusalKind::kStaleHandle, own.generation(),
                   own.generation() + 1);
    expect_refused([&] { return program_->owner(owner); }, RefusalKind::kStaleHandle, owner.generation(),
                   owner.generation() + 1);
    EXPECT_TRUE(ok(program_->checkpoint(shared)).device_ready);
    ok(program_->delete_checkpoint(shared));
    expect_idle();
}

TEST_F(CheckpointTest, CapturesAreRefusedWithBothValues) {
    load_hybrid();
    const auto empty = open_root(64);
    expect_refused([&] { return program_->capture(empty, {}); }, RefusalKind::kBeyondFrontier, 1, 0);
    expect_refused([&] { return program_->finish(empty, {}); }, RefusalKind::kBeyondFrontier, 1, 0);
    compute(empty, random_tokens(10));
    // The page of the copy would be missing for the growth that was promised.
    expect_refused([&] { return program_->capture(empty, {}); }, RefusalKind::kOverReservation, 64, 0);
    const auto sequence = open_root(128, kCheckpointSlots + 1);
    const auto prompt = random_tokens(kCheckpointSlots + 1);
    for (std::int64_t i = 0; i < kCheckpointSlots; ++i) {
        compute(sequence, {prompt[static_cast<std::size_t>(i)]});
        ok(program_->capture(sequence, {}));
        settle();
    }
    compute(sequence, {prompt.back()});
    expect_refused([&] { return program_->capture(sequence, {}); }, RefusalKind::kNoImageSlots, 1, 0);
    expect_refused([&] { return program_->finish(sequence, {}); }, RefusalKind::kNoImageSlots, 1, 0);
    // No Device slot is needed for an image that goes to Host.
    ok(program_->capture(sequence, {CheckpointKind::kLongAnchor, Tier::kHost}));
    settle();
    expect_continues(sequence, prompt, random_tokens(2));
}

TEST_F(CheckpointTest, NothingIsCapturedOfAPendingRow) {
    load_hybrid();
    const auto sequence = open_root(64);
    const auto other = open_root(64);
    compute(other, random_tokens(3));
    ok(program_->append(sequence, random_tokens(5), TokenOrigin::kPrompt));
    const auto batch = ok(program_->finish_prefill({sequence, {}}));
    const auto id = static_cast<std::int64_t>(batch.id);
    expect_refused([&] { return program_->capture(sequence, {}); }, RefusalKind::kPendingBatch, 0, id);
    expect_refused([&] { return program_->finish(sequence, {}); }, RefusalKind::kPendingBatch, 0, id);
    ok(program_->finish(other, {}));  // which is no member
    ok(program_->abort(batch));
    ok(program_->finish(sequence, {}));
}

TEST_F(CheckpointTest, StaleHandlesAreRefused) {
    load_hybrid();
    const auto endpoint = endpoint_of(random_tokens(10));
    const auto owner = ok(program_->checkpoint(endpoint)).owner;
    ok(program_->delete_checkpoint(endpoint));
    const auto wanted = endpoint.generation();
    const auto kind = RefusalKind::kStaleHandle;
    const std::array stale = {endpoint};
    std::array<Verification, 1> out;
    expect_refused([&] { return program_->checkpoint(endpoint); }, kind, wanted, wanted + 1);
    expect_refused([&] { return program_->delete_checkpoint(endpoint); }, kind, wanted, wanted + 1);
    expect_refused([&] { return program_->start_copy(endpoint, Tier::kHost); }, kind, wanted, wanted + 1);
    expect_refused([&] { return program_->drop(endpoint, Tier::kHost); }, kind, wanted, wanted + 1);
    expect_refused([&] { return program_->cancel_copies(endpoint); }, kind, wanted, wanted + 1);
    expect_refused([&] { return program_->open_from({endpoint}, {.tokens = 20}); }, kind, wanted, wanted + 1);
    expect_refused([&] { return program_->verify({}, stale, out); }, kind, wanted, wanted + 1);
    expect_refused([&] { return program_->owner(owner); }, kind, owner.generation(), owner.generation() + 1);
    expect_refused([&] { return program_->release_owner(owner); }, kind, owner.generation(), owner.generation() + 1);
    const SequenceHandle never{7};
    expect_refused([&] { return program_->capture(never, {}); }, kind, 0, 0);
    expect_refused([&] { return program_->finish(never, {}); }, kind, 0, 0);
    expect_refused([&] { return program_->capture_shape(never); }, kind, 0, 0);
    expect_refused([&] { return program_->close_sequence(never); }, kind, 0, 0);
}

}  // namespace
}  // namespace ninfer
