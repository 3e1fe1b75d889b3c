#include "tests/cpp/state/stores_fixture.h"

namespace ninfer {
namespace {

class StateImageStoreTest : public testing_support::StoresTest {
   protected:
    // A unit: reads the whole image, writes another value everywhere, commits. Returns the value that it read.
    int advance(ImageId image, int value) {
        const std::byte* read = images_.read(image);
        std::byte* write = images_.write(image);
        const auto before = static_cast<int>(read[0]);
        EXPECT_TRUE(std::all_of(read, read + kImages.image_bytes, [&](std::byte b) { return b == read[0]; }));
        std::memset(write, value, kImages.image_bytes);
        ok(images_.commit(image));
        return before;
    }
    // What each replica of a frozen image holds.
    void expect_holds(ImageId id, int value) {
        const StateImage& image = *images_.find(id).value();
        const std::vector<std::byte> expected(kImages.image_bytes, static_cast<std::byte>(value));
        if (image.on_device()) {
            EXPECT_EQ(std::memcmp(images_.slot_data(image.slot), expected.data(), expected.size()), 0);
        }
        if (image.on_host()) {
            EXPECT_EQ(host_bytes(image.host, expected.size()), expected);
        }
    }
    ImageId frozen_of(int value) {
        const ImageId image = ok(images_.open());
        advance(image, value);
        ok(images_.finish(image));
        return image;
    }
    const StateImage& image(ImageId id) { return *images_.find(id).value(); }
};

TEST_F(StateImageStoreTest, ImagesOpenAsZerosAndAreWrittenInPlace) {
    for (int round = 0; round < 4; ++round) {
        const ImageId id = ok(images_.open());
        EXPECT_EQ(images_.read(id), images_.write(id));
        const auto epoch = image(id).epoch;
        EXPECT_EQ(advance(id, 3), 0);  // whoever had the slot before left nothing
        EXPECT_GT(image(id).epoch, epoch);
        EXPECT_EQ(advance(id, 4), 3);
        EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 1}));
        ok(images_.release(id));
    }
}

TEST_F(StateImageStoreTest, ForkBorrowsUntilItsFirstCommit) {
    const ImageId source = frozen_of(5);
    const ImageId fork = ok(images_.fork(source));
    EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 1, .image_slots_checkpoint = 1}));
    EXPECT_NE(images_.read(fork), images_.write(fork));
    EXPECT_EQ(image(fork).epoch, image(source).epoch);
    expect_refused([&] { return images_.release(source); }, RefusalKind::kPinned, 0, 1);
    expect_refused([&] { return images_.drop(source, Tier::kDevice); }, RefusalKind::kLastReplica, 1, 0);
    expect_refused([&] { return images_.freeze(fork); }, RefusalKind::kUnsettled, 0, 1);
    expect_refused([&] { return images_.finish(fork); }, RefusalKind::kUnsettled, 0, 1);
    expect_refused([&] { return copies_.start_snapshot(fork); }, RefusalKind::kUnsettled, 0, 1);
    const ImageId second = ok(images_.fork(source));
    EXPECT_EQ(image(source).pins, 2);
    EXPECT_EQ(advance(fork, 6), 5);
    EXPECT_EQ(advance(fork, 7), 6);
    EXPECT_EQ(image(source).pins, 1);
    ok(images_.release(second));  // given up before it wrote
    ok(images_.release(source));
    EXPECT_EQ(advance(fork, 8), 7);
}

TEST_F(StateImageStoreTest, ConsumeIsTheSameImageInTheSameSlot) {
    const ImageId source = frozen_of(5);
    complete(ok(copies_.start_image(source, Tier::kHost)));
    const std::byte* bytes = images_.slot_data(image(source).slot);
    const ImageId moved = ok(images_.consume(source));
    EXPECT_EQ(images_.write(moved), bytes);
    EXPECT_EQ(images_.read(moved), bytes);
    EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 1}));  // the Host replica went
    EXPECT_EQ(advance(moved, 6), 5);
    expect_refused([&] { return images_.release(source); }, RefusalKind::kStaleHandle, source.generation(),
                   moved.generation());
}

TEST_F(StateImageStoreTest, FreezeLeavesTheBytesAndBorrowsThem) {
    const ImageId active = ok(images_.open());
    advance(active, 5);
    const std::byte* bytes = images_.write(active);
    const ImageId frozen = ok(images_.freeze(active));
    EXPECT_EQ(images_.slot_data(image(frozen).slot), bytes);
    EXPECT_EQ(images_.read(active), bytes);
    EXPECT_NE(images_.write(active), bytes);
    EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 1, .image_slots_checkpoint = 1}));
    expect_refused([&] { return images_.freeze(active); }, RefusalKind::kUnsettled, 0, 1);
    ok(images_.retain(frozen));
    expect_refused([&] { return images_.consume(frozen); }, RefusalKind::kShared, 1, 2);
    ok(images_.release(frozen));
    expect_refused([&] { return images_.consume(frozen); }, RefusalKind::kPinned, 0, 1);
    EXPECT_EQ(advance(active, 6), 5);
    expect_holds(frozen, 5);
    const ImageId second = ok(images_.freeze(active));
    EXPECT_EQ(advance(active, 7), 6);
    expect_holds(second, 6);
    expect_refused([&] { return images_.freeze(active); }, RefusalKind::kNoImageSlots, 1, 0);
    expect_refused([&] { return images_.finish(active); }, RefusalKind::kNoImageSlots, 1, 0);
    ok(images_.release(frozen));
    ok(images_.finish(active));
    expect_holds(active, 7);
}

TEST_F(StateImageStoreTest, TheTwoCountsAreLimitedNotTheSlots) {
    std::vector<ImageId> active;
    for (int i = 0; i < kImages.active_slots; ++i) active.push_back(ok(images_.open()));
    expect_refused([&] { return images_.open(); }, RefusalKind::kNoImageSlots, 1, 0);
    ok(images_.finish(active[0]));
    ok(images_.finish(active[1]));
    expect_refused([&] { return images_.finish(active[2]); }, RefusalKind::kNoImageSlots, 1, 0);
    ok(images_.open());
    ok(images_.open());
    EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 3, .image_slots_checkpoint = 2}));
    expect_refused([&] { return images_.fork(active[0]); }, RefusalKind::kNoImageSlots, 1, 0);
    expect_refused([&] { return images_.consume(active[0]); }, RefusalKind::kNoImageSlots, 1, 0);
    ok(images_.release(active[2]));
    ok(images_.consume(active[0]));
    EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 3, .image_slots_checkpoint = 1}));
}

TEST_F(StateImageStoreTest, DemotedImagesComeBack) {
    const ImageId source = frozen_of(9);
    complete(ok(copies_.start_image(source, Tier::kHost)));
    expect_holds(source, 9);
    ok(images_.drop(source, Tier::kDevice));
    EXPECT_EQ(copies_.used(), (UsedVector{.host_blocks = kImageBlocks}));
    expect_refused([&] { return images_.drop(source, Tier::kDevice); }, RefusalKind::kNoReplica, 0, -1);
    expect_refused([&] { return images_.drop(source, Tier::kHost); }, RefusalKind::kLastReplica, 1, 0);
    expect_refused([&] { return images_.fork(source); }, RefusalKind::kNotOnDevice, 1, 0);
    expect_refused([&] { return images_.consume(source); }, RefusalKind::kNotOnDevice, 1, 0);
    std::fill_n(image_memory_.data(), image_memory_.size(), std::byte{0xDD});
    complete(ok(copies_.start_image(source, Tier::kDevice)));
    expect_holds(source, 9);
    expect_refused([&] { return copies_.start_image(source, Tier::kDevice); }, RefusalKind::kAlreadyThere, 0, 0);
    expect_refused([&] { return copies_.start_image(source, Tier::kHost); }, RefusalKind::kAlreadyThere, 1, 1);
    ok(images_.drop(source, Tier::kHost));
    EXPECT_EQ(advance(ok(images_.consume(source)), 1), 9);
}

TEST_F(StateImageStoreTest, RestoreGoesStraightIntoAnActiveSlot) {
    const ImageId source = frozen_of(9);
    expect_refused([&] { return images_.restore(source); }, RefusalKind::kNoReplica, 1, -1);
    complete(ok(copies_.start_image(source, Tier::kHost)));
    ok(images_.drop(source, Tier::kDevice));
    const ImageId restored = ok(images_.restore(source));
    EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 1, .host_blocks = kImageBlocks}));
    expect_refused([&] { return images_.commit(restored); }, RefusalKind::kUnsettled, 0, 1);
    expect_refused([&] { return images_.freeze(restored); }, RefusalKind::kUnsettled, 0, 1);
    expect_refused([&] { return images_.finish(restored); }, RefusalKind::kUnsettled, 0, 1);
    expect_refused([&] { return images_.release(source); }, RefusalKind::kPinned, 0, 1);
    const CopyId copy = ok(copies_.start_restore(restored));
    expect_refused([&] { return copies_.start_restore(restored); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return images_.release(restored); }, RefusalKind::kPinned, 0, 1);
    complete(copy);
    expect_refused([&] { return copies_.start_restore(restored); }, RefusalKind::kAlreadyThere, 0, 0);
    ok(images_.release(source));
    EXPECT_EQ(advance(restored, 1), 9);
    EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 1}));
}

TEST_F(StateImageStoreTest, AnUnsettledImageMayBeGivenUp) {
    const ImageId source = frozen_of(9);
    complete(ok(copies_.start_image(source, Tier::kHost)));
    const ImageId restored = ok(images_.restore(source));
    ok(images_.release(restored));
    EXPECT_EQ(image(source).pins, 0);
    EXPECT_EQ(copies_.used().image_slots_active, 0);
}

TEST_F(StateImageStoreTest, SnapshotsNeedNoSlotAndKnowWhenTheyAreOutdated) {
    const ImageId active = ok(images_.open());
    advance(active, 4);
    const CopyId late = ok(copies_.start_snapshot(active));
    expect_refused([&] { return copies_.start_snapshot(active); }, RefusalKind::kCopyInFlight, 0, 1);
    expect_refused([&] { return images_.release(active); }, RefusalKind::kPinned, 0, 1);
    expect_refused([&] { return images_.freeze(active); }, RefusalKind::kPinned, 0, 1);
    engine_.complete_all();
    const auto epoch = static_cast<std::int64_t>(image(active).epoch);
    advance(active, 5);
    expect_refused([&] { return copies_.publish(late); }, RefusalKind::kOutdatedCopy, epoch,
                   static_cast<std::int64_t>(image(active).epoch));
    ok(copies_.cancel(late));
    EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 1}));
    const ImageId snapshot = complete(ok(copies_.start_snapshot(active)));
    EXPECT_FALSE(image(snapshot).active);
    EXPECT_EQ(image(snapshot).epoch, image(active).epoch);
    EXPECT_EQ(copies_.used(), (UsedVector{.image_slots_active = 1, .host_blocks = kImageBlocks}));
    advance(active, 6);
    expect_holds(snapshot, 5);
    ok(images_.release(active));
    expect_holds(snapshot, 5);
}

TEST_F(StateImageStoreTest, RefusesTheWrongKindAndStaleHandles) {
    const ImageId active = ok(images_.open());
    expect_refused([&] { return images_.fork(active); }, RefusalKind::kActive, 0, 1);
    expect_refused([&] { return images_.consume(active); }, RefusalKind::kActive, 0, 1);
    expect_refused([&] { return images_.restore(active); }, RefusalKind::kActive, 0, 1);
    expect_refused([&] { return images_.retain(active); }, RefusalKind::kActive, 0, 1);
    expect_refused([&] { return images_.drop(active, Tier::kDevice); }, RefusalKind::kActive, 0, 1);
    expect_refused([&] { return copies_.start_image(active, Tier::kHost); }, RefusalKind::kActive, 0, 1);
    const ImageId frozen = frozen_of(1);
    expect_refused([&] { return images_.commit(frozen); }, RefusalKind::kFrozen, 1, 0);
    expect_refused([&] { return images_.freeze(frozen); }, RefusalKind::kFrozen, 1, 0);
    expect_refused([&] { return images_.finish(frozen); }, RefusalKind::kFrozen, 1, 0);
    expect_refused([&] { return copies_.start_snapshot(frozen); }, RefusalKind::kFrozen, 1, 0);
    ok(images_.release(frozen));
    const auto stale = RefusalKind::kStaleHandle;
    expect_refused([&] { return images_.fork(frozen); }, stale, 1, 2);
    expect_refused([&] { return images_.consume(frozen); }, stale, 1, 2);
    expect_refused([&] { return images_.restore(frozen); }, stale, 1, 2);
    expect_refused([&] { return images_.commit(frozen); }, stale, 1, 2);
    expect_refused([&] { return images_.freeze(frozen); }, stale, 1, 2);
    expect_refused([&] { return images_.finish(frozen); }, stale, 1, 2);
    expect_refused([&] { return images_.retain(frozen); }, stale, 1, 2);
    expect_refused([&] { return images_.release(frozen); }, stale, 1, 2);
    expect_refused([&] { return images_.drop(frozen, Tier::kHost); }, stale, 1, 2);
    expect_refused([&] { return copies_.start_image(frozen, Tier::kHost); }, stale, 1, 2);
    expect_refused([&] { return copies_.start_snapshot(frozen); }, stale, 1, 2);
    expect_refused([&] { return copies_.start_restore(frozen); }, stale, 1, 2);
}

TEST_F(StateImageStoreTest, BrokenUseStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const ImageId frozen = frozen_of(1);
    EXPECT_DEATH(images_.read(frozen), "frozen or not there");
    EXPECT_DEATH(images_.write(frozen), "frozen or not there");
    EXPECT_DEATH(images_.unpin(frozen), "left = 1, right = 0");
    EXPECT_DEATH(images_.publish_on_device(frozen, 0), "second Device replica");
    EXPECT_DEATH(images_.publish_on_host(frozen, {}, image(frozen).epoch), "left = 0, right = 3");
    EXPECT_DEATH(images_.settle(frozen), "settled again");
    EXPECT_DEATH(images_.slot_data(5), "left = 5, right = 5");
    EXPECT_DEATH(StateImageStore(image_memory_, {320, 3, 3}, host_), "left = 1920, right = 1600");
    EXPECT_DEATH(StateImageStore(image_memory_, {0, 3, 3}, host_), "left = 0, right = 0");
    const auto check = [&] { copies_.check_invariants(); };
    EXPECT_DEATH((images_.pin(frozen), check()), "left = 1, right = 0");
    EXPECT_DEATH((images_.mark_copying(frozen, true), check()), "left = 1, right = 0");
    EXPECT_DEATH((static_cast<void>(images_.take_checkpoint_slot()), check()), "left = 1, right = 2");
    EXPECT_DEATH((images_.give_back_checkpoint_slot(image(frozen).slot), check()), "two owners");
}

}  // namespace
}  // namespace ninfer
