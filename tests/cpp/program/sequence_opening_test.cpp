// Sequences that start from checkpoints: shared, moved or cut short, refused with both values, and always with the bits of
// an undisturbed run.

#include "cpp/program/sequence_opening.h"

#include "tests/cpp/program/checkpoint_fixture.h"

namespace ninfer {
namespace {

using testing_support::CheckpointTest;

TEST_F(CheckpointTest, ARetainedSourceServesManyForks) {
    load_hybrid();
    const auto prompt = random_tokens(150);
    const auto endpoint = endpoint_of(prompt);
    const auto first = ok(moving(1, [&] { return program_->open_from({endpoint}, {.tokens = 200}); }));
    const auto second = ok(moving(1, [&] { return program_->open_from({endpoint}, {.tokens = 200}); }));
    // Two full pages are shared, each fork has its own tail.
    EXPECT_EQ(program_->statistics().used.device_pages, 3 + 1 + 1);
    EXPECT_EQ(ok(program_->checkpoint(endpoint)).pages_exclusive, 1);
    expect_refused([&] { return program_->delete_checkpoint(endpoint); }, RefusalKind::kPinned, 0, 4);
    expect_refused([&] { return program_->prefill(first, 1); }, RefusalKind::kUnsettled, 0, 1);
    EXPECT_EQ(moving(1, [&] { return settle(); }).published, 2);
    // The tails are there; the image is read until each fork's first unit.
    expect_refused([&] { return program_->delete_checkpoint(endpoint); }, RefusalKind::kPinned, 0, 2);
    expect_continues(first, prompt, random_tokens(20));
    expect_refused([&] { return program_->delete_checkpoint(endpoint); }, RefusalKind::kPinned, 0, 1);
    expect_continues(second, prompt, random_tokens(20));
    EXPECT_EQ(program_->find(first).value()->prompt_tokens_computed, 20);
    ok(moving(1, [&] { return program_->delete_checkpoint(endpoint); }));
    expect_continues(first, ok(program_->tokens(first)), random_tokens(3));
    ok(program_->close_sequence(first));
    ok(program_->close_sequence(second));
    expect_idle();
}

TEST_F(CheckpointTest, AConsumedSourceContinuesInPlace) {
    for (const std::int64_t frontier : {64, 100}) {
        load_hybrid();
        const auto prompt = random_tokens(frontier);
        const auto endpoint = endpoint_of(prompt);
        const auto owner = ok(program_->checkpoint(endpoint)).owner;
        const auto used = program_->statistics().used;
        const auto sequence =
            ok(moving(1, [&] { return program_->open_from({endpoint, SourceUse::kConsume, {}}, {.tokens = 128}); }));
        const auto now = program_->statistics().used;
        EXPECT_EQ(now.device_pages, used.device_pages);
        EXPECT_EQ(now.device_pages_reserved, frontier == 64 ? 1 : 0);
        EXPECT_EQ(now.image_slots_checkpoint, 0);
        EXPECT_EQ(program_->find(sequence).value()->waits, 0);
        EXPECT_EQ(program_->find(sequence).value()->owner, owner);
        EXPECT_EQ(to_string(ok(program_->owner(owner)).role), "active");
        expect_refused([&] { return program_->checkpoint(endpoint); }, RefusalKind::kStaleHandle, endpoint.generation(),
                       endpoint.generation() + 1);
        expect_continues(sequence, prompt, random_tokens(128 - frontier));
        EXPECT_EQ(ok(program_->finish(sequence, {})), owner);
        ok(program_->release_owner(owner));
        expect_idle();
    }
}

TEST_F(CheckpointTest, ConsumingAShallowCheckpointDeletesTheDeeperOnes) {
    load_hybrid();
    const auto prompt = random_tokens(200);
    const auto sequence = open_root(200, 2);
    compute(sequence, first_of(prompt, 64));
    const auto shallow = ok(program_->capture(sequence, {}));
    compute(sequence, {prompt.begin() + 64, prompt.begin() + 130});
    const auto middle = ok(program_->capture(sequence, {}));
    settle();
    expect_refused([&] { return program_->open_from({middle, SourceUse::kConsume, {}}, {.tokens = 200}); },
                   RefusalKind::kActive, 0, 1);
    compute(sequence, {prompt.begin() + 130, prompt.end()});
    const auto owner = ok(program_->finish(sequence, {}));
    const auto deep = ok(program_->owner(owner)).checkpoints.back();
    // A deeper checkpoint that somebody copies cannot go.
    ok(program_->start_copy(deep, Tier::kHost));
    expect_refused([&] { return program_->open_from({middle, SourceUse::kConsume, {}}, {.tokens = 200}); },
                   RefusalKind::kCopyInFlight, 0, 5);
    settle();
    const auto back = open_from(middle, 200, SourceUse::kConsume);
    settle();
    EXPECT_EQ(ok(program_->owner(owner)).checkpoints, std::vector{shallow});
    for (const auto gone : {middle, deep}) EXPECT_FALSE(program_->checkpoint(gone).has_value());
    EXPECT_EQ(program_->statistics().used.host_blocks, 2);  // of the full pages, which are still there
    expect_continues(back, first_of(prompt, 130), random_tokens(30));
    const auto other = open_from(shallow, 100);
    expect_continues(other, first_of(prompt, 64), random_tokens(3));
    ok(program_->close_sequence(other));
    ok(program_->close_sequence(back));
    expect_idle();
}

TEST_F(CheckpointTest, NobodyTakesASharedOwnerOver) {
    for (const bool recurrent : {true, false}) {
        load(recurrent);
        const auto prompt = random_tokens(100);
        const auto sequence = open_root(128, 1);
        compute(sequence, prompt);
        const auto shared =
            ok(program_->capture(sequence, {CheckpointKind::kSharedStablePrefix, Tier::kDevice, false}));
        settle();
        ok(program_->close_sequence(sequence));
        // Wanted: a private owner; found: a shared one.
        for (const auto use : {SourceUse::kConsume, SourceUse::kContinue})
            expect_refused([&] { return program_->open_from({shared, use, {}}, {.tokens = 128}); },
                           RefusalKind::kShared, 1, 2);
        if (!recurrent)
            expect_refused([&] { return program_->open_from({shared, SourceUse::kConsume, 70}, {.tokens = 128}); },
                           RefusalKind::kShared, 1, 2);
        const auto owner = ok(program_->checkpoint(shared)).owner;
        for (int i = 0; i < 2; ++i) {
            const auto fork = open_from(shared, 128);
            settle();
            expect_continues(fork, prompt, random_tokens(5));
            ok(program_->close_sequence(fork));
        }
        EXPECT_EQ(to_string(ok(program_->owner(owner)).role), "shared");
        ok(program_->release_owner(owner));
        expect_idle();
    }
}

TEST_F(CheckpointTest, AConsumedImageThatSomebodyReadsIsForked) {
    load_hybrid();
    const auto prompt = random_tokens(64);
    const auto endpoint = endpoint_of(prompt);
    const auto reader = open_from(endpoint, 128);
    const auto mover = open_from(endpoint, 128, SourceUse::kConsume);
    EXPECT_EQ(program_->statistics().used.image_slots_checkpoint, 1);  // until both have written
    expect_continues(mover, prompt, random_tokens(3));
    expect_continues(reader, prompt, random_tokens(3));
    poll();
    EXPECT_EQ(program_->statistics().used.image_slots_checkpoint, 0);
    ok(program_->close_sequence(reader));
    ok(program_->close_sequence(mover));
    expect_idle();
}

TEST_F(CheckpointTest, AnImageOnHostIsRestoredBeforeItIsConsumed) {
    load_hybrid();
    const auto prompt = random_tokens(70);
    const auto endpoint = endpoint_of(prompt, Tier::kHost);
    settle();
    expect_refused([&] { return program_->open_from({endpoint, SourceUse::kConsume, {}}, {.tokens = 128}); },
                   RefusalKind::kNotOnDevice, 1, 0);
    const auto fork = open_from(endpoint, 128);
    expect_refused([&] { return program_->capture(fork, {}); }, RefusalKind::kUnsettled, 0, 2);
    settle();
    expect_continues(fork, prompt, random_tokens(9));
    ok(program_->close_sequence(fork));
    ok(program_->start_copy(endpoint, Tier::kDevice));
    settle();
    const auto moved = open_from(endpoint, 128, SourceUse::kConsume);
    EXPECT_EQ(program_->statistics().used.host_blocks, 0);
    expect_continues(moved, prompt, random_tokens(9));
}

TEST_F(CheckpointTest, WithoutRecurrentLayersEveryFrontierIsACandidate) {
    load(false);
    const auto prompt = random_tokens(135);
    for (const auto use : {SourceUse::kRetain, SourceUse::kConsume}) {
        for (const std::int64_t frontier : {1, 63, 64, 65, 127, 128, 134, 135}) {
            const auto endpoint = endpoint_of(prompt);
            const auto sequence = ok(program_->open_from({endpoint, use, frontier}, {.tokens = 200}));
            settle();
            EXPECT_EQ(program_->checkpoint(endpoint).has_value(), use == SourceUse::kRetain);
            expect_continues(sequence, first_of(prompt, frontier), random_tokens(7));
            if (use == SourceUse::kRetain) {
                const auto whole = open_from(endpoint, 200);
                settle();
                expect_continues(whole, prompt, random_tokens(2));
                ok(program_->close_sequence(whole));
                ok(program_->delete_checkpoint(endpoint));
            }
            ok(program_->close_sequence(sequence));
            expect_idle();
        }
    }
}

TEST_F(CheckpointTest, StartsAreRefusedWithBothValues) {
    load_hybrid();
    const auto prompt = random_tokens(100);
    const auto endpoint = endpoint_of(prompt);
    const auto open = [&](const SequenceSource& source, const SequenceRequest& request) {
        return [this, source, request] { return program_->open_from(source, request); };
    };
    const auto retain = SourceUse::kRetain;
    expect_refused(open({endpoint, retain, 101}, {.tokens = 200}), RefusalKind::kBeyondFrontier, 101, 100);
    expect_refused(open({endpoint, retain, 99}, {.tokens = 200}), RefusalKind::kBackwards, 99, 100);
    expect_refused(open({endpoint}, {200, false, 0, {"salt", "", 0}}), RefusalKind::kMismatch, 100, 0);
    expect_refused(open({endpoint}, {200, false, 0, {"", "mode", 0}}), RefusalKind::kMismatch, 100, 0);
    expect_refused(open({endpoint}, {200, false, 0, {"", "", 1}}), RefusalKind::kMismatch, 100, 0);
    expect_refused(open({endpoint}, {.tokens = 99}), RefusalKind::kOverReservation, 100, 99);
    expect_refused(open({endpoint}, {.tokens = kMaxContext + 1}), RefusalKind::kOverContext, kMaxContext + 1,
                   kMaxContext);
    const auto big = open_root(kMaxContext);
    const auto medium = open_root(64 * 8);
    expect_refused(open({endpoint}, {.tokens = kMaxContext}), RefusalKind::kNoPages, 7, kDevicePages - 2 - 8 - 8);
    open_root(1);
    expect_refused(open({endpoint}, {.tokens = 120}), RefusalKind::kNoLane, 4, 3);
    ok(program_->close_sequence(big));
    ok(program_->close_sequence(medium));
    ok(program_->start_copy(endpoint, Tier::kHost));
    expect_refused(open({endpoint, SourceUse::kConsume, {}}, {.tokens = 120}), RefusalKind::kCopyInFlight, 0, 3);
    settle();
    ok(program_->drop(endpoint, Tier::kDevice));
    expect_refused(open({endpoint}, {.tokens = 120}), RefusalKind::kNotOnDevice, 2, 0);
}

TEST_F(CheckpointTest, ALaneWhoseImageIsStillInUseIsNotFree) {
    load_hybrid();
    const auto endpoint = endpoint_of(random_tokens(64), Tier::kHost);
    settle();
    open_root(1);
    open_root(1);
    const auto expect_taken = [&] {
        expect_refused([&] { return program_->open_sequence({.tokens = 1}); }, RefusalKind::kNoLane, 4, 3);
        expect_refused([&] { return program_->open_from({endpoint}, {.tokens = 64}); }, RefusalKind::kNoLane, 4, 3);
    };
    // Finished: its image is still being copied to Host.
    const auto finished = open_root(10);
    compute(finished, random_tokens(5));
    ok(program_->finish(finished, {CheckpointKind::kLongAnchor, Tier::kHost}));
    expect_taken();
    settle();
    // Closed: the restore of its image drains.
    const auto closed = open_from(endpoint, 64);
    ok(program_->close_sequence(closed));
    expect_taken();
    settle();
    open_root(1);
    expect_taken();
}

TEST_F(CheckpointTest, ATailThatIsBeingCopiedIsNotWrittenInPlace) {
    load_hybrid();
    const auto prompt = random_tokens(100);
    const auto endpoint = endpoint_of(prompt);
    const auto fork = open_from(endpoint, 128);
    const SequenceSource consumed{endpoint, SourceUse::kConsume, {}};
    expect_refused([&] { return program_->open_from(consumed, {.tokens = 128}); }, RefusalKind::kPinned, 0, 2);
    settle();
    const auto moved = ok(program_->open_from(consumed, {.tokens = 128}));
    expect_continues(moved, prompt, random_tokens(4));
    expect_continues(fork, prompt, random_tokens(4));
    ok(program_->close_sequence(fork));
    ok(program_->close_sequence(moved));
    expect_idle();
}

TEST_F(CheckpointTest, InheritedTokensCountForPenalties) {
    load_hybrid();
    const auto prompt = random_tokens(90);
    const auto endpoint = endpoint_of(prompt);
    SamplerInput sampler;
    sampler.repetition_penalty = 3.0F;
    sampler.temperature = 0.7F;
    sampler.seed = 11;
    const auto speak = [&](Program& program, SequenceHandle sequence) {
        std::vector<std::int32_t> tokens;
        ok(program.append(sequence, std::array{prompt[0]}, TokenOrigin::kPrompt));
        for (int i = 0; i < 8; ++i) {
            const auto batch = ok(i == 0 ? program.finish_prefill({sequence, sampler})
                                         : program.decode(std::array{RowRequest{sequence, sampler}}));
            tokens.push_back(batch.sampled[0].id);
            ok(program.commit(batch, std::array{1}));
        }
        return tokens;
    };
    const auto fork = ok(program_->open_from({endpoint}, {.tokens = 128, .count_tokens = true}));
    settle();
    const auto whole = ok(undisturbed_->open_sequence({.tokens = 128, .count_tokens = true}));
    compute(*undisturbed_, whole, prompt);
    EXPECT_EQ(speak(*program_, fork), speak(*undisturbed_, whole));
}

TEST_F(CheckpointTest, PromptsAreVerifiedAgainstCheckpointsExactly) {
    load_hybrid();
    const auto prompt = random_tokens(100);
    const std::array endpoints = {endpoint_of(first_of(prompt, 40)), endpoint_of(prompt)};
    auto other = prompt;
    other[70] = (other[70] + 1) % 90;
    const IdentityHeader header;
    const IdentityHeader salted{"salt", "", 0};
    std::array<Verification, 2> found;
    ok(program_->verify({&header, other, {}}, endpoints, found));
    EXPECT_EQ(found[0].matched, 40);
    EXPECT_TRUE(found[0].exact);
    EXPECT_EQ(found[1].matched, 70);
    EXPECT_FALSE(found[1].exact);
    ok(program_->verify({&salted, other, {}}, endpoints, found));
    EXPECT_EQ(found[0].matched, 0);
}

}  // namespace
}  // namespace ninfer
