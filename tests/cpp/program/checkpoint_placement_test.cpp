// Checkpoints that move between Device and Host, are dropped and deleted in every order, and start sequences afterwards.

#include "cpp/program/checkpoint_placement.h"

#include <algorithm>

#include "tests/cpp/program/checkpoint_fixture.h"

namespace ninfer {
namespace {

using testing_support::CheckpointTest;

TEST_F(CheckpointTest, ACheckpointGoesToHostAndComesBackBitForBit) {
    for (const auto storage : {KvStorage::kF32, KvStorage::kBf16, KvStorage::kInt8}) {
        for (const bool recurrent : {true, false}) {
            load(recurrent, storage);
            const auto prompt = random_tokens(150);
            const auto endpoint = endpoint_of(prompt);
            const auto statistics = program_->statistics();
            const auto all_bytes = 3 * statistics.page_bytes + statistics.state_image_bytes;
            EXPECT_EQ(ok(moving(0, [&] { return program_->start_copy(endpoint, Tier::kHost); })), all_bytes);
            EXPECT_EQ(program_->statistics().copies_open, recurrent ? 4 : 3);
            moving(1, [&] { return settle(); });
            EXPECT_EQ(ok(program_->start_copy(endpoint, Tier::kHost)), 0);
            ok(moving(1, [&] { return program_->drop(endpoint, Tier::kDevice); }));
            const auto on_host = ok(program_->checkpoint(endpoint));
            EXPECT_TRUE(on_host.valid && !on_host.device_ready);
            EXPECT_EQ(on_host.pages_on_host, 3);
            EXPECT_EQ(program_->statistics().used.device_pages, 0);
            EXPECT_EQ(program_->statistics().used.image_slots_checkpoint, 0);

            endpoint_of(random_tokens(200));  // takes and overwrites the pages that were free
            EXPECT_EQ(ok(program_->start_copy(endpoint, Tier::kDevice)), all_bytes);
            settle();
            EXPECT_TRUE(ok(program_->checkpoint(endpoint)).device_ready);
            ok(moving(1, [&] { return program_->drop(endpoint, Tier::kHost); }));
            EXPECT_EQ(program_->statistics().used.host_blocks, 0);
            const auto sequence = open_from(endpoint, 200);
            settle();
            expect_continues(sequence, prompt, random_tokens(11));
        }
    }
}

TEST_F(CheckpointTest, PlacementIsRefusedWithBothValues) {
    load_hybrid();
    const auto prompt = random_tokens(128);
    const auto endpoint = endpoint_of(prompt);
    const auto drop = [&](Tier tier) { return [this, endpoint, tier] { return program_->drop(endpoint, tier); }; };
    const auto copy = [&](CheckpointHandle checkpoint, Tier tier) {
        return [this, checkpoint, tier] { return program_->start_copy(checkpoint, tier); };
    };
    expect_refused(drop(Tier::kHost), RefusalKind::kNoReplica, 1, -1);
    expect_refused(drop(Tier::kDevice), RefusalKind::kLastReplica, 1, 0);
    ok(program_->start_copy(endpoint, Tier::kHost));
    expect_refused(copy(endpoint, Tier::kHost), RefusalKind::kCopyInFlight, 0, 3);
    expect_refused(drop(Tier::kDevice), RefusalKind::kCopyInFlight, 0, 3);
    settle();
    const auto reader = open_from(endpoint, 192);
    expect_refused(drop(Tier::kDevice), RefusalKind::kActive, 0, 1);  // nor the image, which the reader borrows
    compute(reader, random_tokens(1));
    EXPECT_EQ(ok(moving(1, drop(Tier::kDevice))), 1);  // the image alone
    expect_refused(drop(Tier::kDevice), RefusalKind::kActive, 0, 1);
    ok(program_->start_copy(endpoint, Tier::kDevice));
    settle();
    EXPECT_EQ(ok(program_->drop(endpoint, Tier::kHost)), 3);
    ok(program_->close_sequence(reader));

    // 14 pages and whatever an image takes are too much for 14 pages of blocks.
    const auto wide = endpoint_of(random_tokens(14 * 64 / 2));
    move_to(wide, Tier::kHost);
    const auto statistics = program_->statistics();
    const auto free = statistics.capacity.host_blocks - statistics.used.host_blocks;
    const auto blocks = [&](std::int64_t bytes) {
        return (bytes + statistics.host_block_bytes - 1) / statistics.host_block_bytes;
    };
    const auto large = endpoint_of(random_tokens(kMaxContext));
    expect_refused(copy(large, Tier::kHost), RefusalKind::kNoHostBlocks,
                   8 * blocks(statistics.page_bytes) + blocks(statistics.state_image_bytes), free);
    const auto filler = open_root(64 * (kDevicePages - 2 - 8 - 6));
    expect_refused(copy(wide, Tier::kDevice), RefusalKind::kNoPages, 7, 6);
    ok(program_->close_sequence(filler));
    endpoint_of(random_tokens(1));
    expect_refused(copy(wide, Tier::kDevice), RefusalKind::kNoImageSlots, 1, 0);
}

TEST_F(CheckpointTest, SharedPagesMoveOnceAndOneCopyAtATime) {
    load_hybrid();
    const auto prompt = random_tokens(192);
    const auto sequence = open_root(256);
    compute(sequence, first_of(prompt, 128));
    const auto shallow = ok(program_->capture(sequence, {}));
    compute(sequence, {prompt.begin() + 128, prompt.end()});
    const auto owner = ok(program_->finish(sequence, {}));
    const auto deep = ok(program_->owner(owner)).checkpoints.back();
    const auto statistics = program_->statistics();
    ok(program_->start_copy(shallow, Tier::kHost));
    expect_refused([&] { return program_->start_copy(deep, Tier::kHost); }, RefusalKind::kCopyInFlight, 0, 2);
    settle();
    EXPECT_EQ(ok(program_->start_copy(deep, Tier::kHost)), statistics.page_bytes + statistics.state_image_bytes);
    settle();
    // The shallow one loses the pages that it shares, and only those.
    ok(program_->drop(deep, Tier::kDevice));
    EXPECT_EQ(ok(program_->checkpoint(shallow)).pages_on_device, 0);
    EXPECT_TRUE(ok(program_->checkpoint(shallow)).image_on_device);
    ok(program_->release_owner(owner));
    expect_idle();
}

TEST_F(CheckpointTest, WhatASequenceReadsStaysOnDeviceAndTheRestGoes) {
    load_hybrid();
    const auto prompt = random_tokens(192);
    const auto sequence = open_root(256);
    compute(sequence, first_of(prompt, 64));
    const auto shallow = ok(program_->capture(sequence, {}));
    compute(sequence, {prompt.begin() + 64, prompt.end()});
    const auto deep = ok(program_->owner(ok(program_->finish(sequence, {})))).checkpoints.back();
    const auto reader = open_from(shallow, 128);
    ok(program_->start_copy(deep, Tier::kHost));
    settle();
    EXPECT_EQ(ok(moving(1, [&] { return program_->drop(deep, Tier::kDevice); })), 3);  // two pages and the image
    const auto summary = ok(program_->checkpoint(deep));
    EXPECT_EQ(summary.pages_on_device, 1);
    EXPECT_EQ(summary.pages_on_host, 3);
    EXPECT_FALSE(summary.image_on_device);
    EXPECT_TRUE(summary.valid);
    expect_continues(reader, first_of(prompt, 64), random_tokens(9));
    ok(program_->start_copy(deep, Tier::kDevice));
    settle();
    const auto fork = open_from(deep, 256);
    expect_continues(fork, prompt, random_tokens(9));
}

TEST_F(CheckpointTest, DeletionInEveryOrderLeavesTheOthersUntouched) {
    const std::array<std::int64_t, 3> frontiers = {64, 100, 170};
    std::array<std::size_t, 3> order = {0, 1, 2};
    do {
        load_hybrid();
        const auto prompt = random_tokens(170);
        const auto sequence = open_root(192, 2);
        std::vector<CheckpointHandle> checkpoints;
        std::int64_t done = 0;
        for (const auto frontier : frontiers) {
            compute(sequence, {prompt.begin() + done, prompt.begin() + frontier});
            done = frontier;
            if (frontier == frontiers.back()) break;
            checkpoints.push_back(ok(program_->capture(sequence, {})));
            settle();
        }
        const auto owner = ok(program_->finish(sequence, {}));
        checkpoints.push_back(ok(program_->owner(owner)).checkpoints.back());
        move_to(checkpoints[order[1]], Tier::kHost);
        for (std::size_t i = 0; i < order.size(); ++i) {
            for (std::size_t left = i; left < order.size(); ++left) {
                const auto checkpoint = checkpoints[order[left]];
                ok(program_->start_copy(checkpoint, Tier::kDevice));
                settle();
                const auto fork = open_from(checkpoint, 192);
                settle();
                expect_continues(fork, first_of(prompt, frontiers[order[left]]), random_tokens(3));
                ok(program_->close_sequence(fork));
            }
            ok(moving(1, [&] { return program_->delete_checkpoint(checkpoints[order[i]]); }));
        }
        EXPECT_FALSE(program_->owner(owner).has_value());
        expect_idle();
    } while (std::next_permutation(order.begin(), order.end()));
}

}  // namespace
}  // namespace ninfer
