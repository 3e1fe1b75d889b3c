// What a target leads to: by hand for each rule, and carried out with real bytes.

#include "tests/cpp/transaction/transaction_fixture.h"

namespace ninfer {
namespace {

using testing_support::KnownHolding;
using testing_support::KnownSequence;
using testing_support::StoresWorld;

constexpr std::int64_t kPageBlocks = StoresWorld::kPageBlocks;
constexpr std::int64_t kImageBlocks = StoresWorld::kImageBlocks;

using ResourceProjectionTest = testing_support::TransactionTest;

TEST_F(ResourceProjectionTest, TheIdentityChangesNothing) {
    build({});
    const KnownHolding base = world().make(130);
    read({base, world().alias(base), world().extend(base, 200)});
    const ResourceProjection projection = project();
    for (const ResourceAxes& used : projection.used) EXPECT_EQ(used, world().used());
    EXPECT_TRUE(projection.fits());
    EXPECT_FALSE(projection.needs_copies());
    const std::uint64_t before = world().copies.fingerprint_of_all();
    EXPECT_FALSE(commit({}).changed);
    EXPECT_EQ(world().copies.fingerprint_of_all(), before);
}

TEST_F(ResourceProjectionTest, OneAliasFreesNothingAndTheLastTwoTogetherFreeOnce) {
    build({});
    const KnownHolding first = world().make(130);
    read({first, world().alias(first)});
    outcomes_[0].survives = false;
    EXPECT_EQ(change_until(project(), ResourceStage::kCommitted), (Axes{}));
    EXPECT_EQ(project().removed, 1);
    std::swap(outcomes_[0], outcomes_[1]);
    EXPECT_EQ(change_until(project(), ResourceStage::kCommitted), (Axes{}));
    outcomes_[0].survives = false;
    EXPECT_EQ(change_until(project(), ResourceStage::kReleased), (Axes{-3, 0, -1, 0}));
    EXPECT_EQ(project().removed, 2);
    commit({});
    EXPECT_EQ(world().used(), (Axes{}));
}

TEST_F(ResourceProjectionTest, WhatHoldingsOutsideTheDomainSeeStays) {
    build({});
    const KnownHolding base = world().make(128);
    const KnownHolding inside = world().extend(base, 200);
    const KnownHolding outside = world().extend(base, 200);
    read({base, inside});
    outcomes_[0].survives = outcomes_[1].survives = false;
    EXPECT_EQ(change_until(project(), ResourceStage::kReleased), (Axes{-2, 0, -2, 0}));
    commit({});
    world().expect_shows(outside);
}

TEST_F(ResourceProjectionTest, PagesThatAnActiveSequenceReadsStayOnDevice) {
    build({});
    const KnownHolding base = world().make(130);
    KnownSequence sequence = world().fork(base, 130, 2);
    world().compute(sequence, 140);
    read({base});
    demote(0);
    const ResourceProjection projection = project();
    EXPECT_EQ(projection.to_host, (CopyWork{2, StoresWorld::kPageBytes + StoresWorld::kImageBytes}));
    EXPECT_EQ(change_until(projection, ResourceStage::kCommitted), (Axes{-1, 0, -1, kPageBlocks + kImageBlocks}));
    commit({});
    world().expect_shows(sequence);
    world().compute(sequence, 180);
    world().expect_shows(base);
}

TEST_F(ResourceProjectionTest, AHostReplicaGoesWithTheLastHoldingThatWantsItWhoeverReads) {
    build({});
    const KnownHolding base = world().make(130);
    const KnownSequence sequence = world().fork(base, 130, 1);
    world().page_to_host(world().page_at(base.holding, 0));
    const KnownHolding other = world().alias(base);
    for (const bool survives : {true, false}) {
        read({base, other});
        outcomes_[0].survives = survives;
        outcomes_[0].drops_host = survives;
        EXPECT_EQ(change_until(project(), ResourceStage::kReleased), (Axes{}));
        outcomes_[1] = outcomes_[0];
        EXPECT_EQ(change_until(project(), ResourceStage::kReleased).host_blocks, -kPageBlocks);
    }
    outcomes_[0].survives = outcomes_[1].survives = true;
    outcomes_[0].drops_host = outcomes_[1].drops_host = true;
    commit({});
    world().expect_shows(sequence);
}

TEST_F(ResourceProjectionTest, ADemotionTakesItsHostBlocksBeforeItGivesItsDevicePages) {
    build({.host_blocks = 3 * kPageBlocks + kImageBlocks});
    read({world().make(192)});
    demote(0);
    const ResourceProjection projection = project();
    EXPECT_EQ(change_until(projection, ResourceStage::kReleased), (Axes{}));
    EXPECT_EQ(change_until(projection, ResourceStage::kDemoting), (Axes{0, 0, 0, 3 * kPageBlocks + kImageBlocks}));
    EXPECT_EQ(change_until(projection, ResourceStage::kDemoted), (Axes{-3, 0, -1, 3 * kPageBlocks + kImageBlocks}));
    EXPECT_EQ(projection.peak, (Axes{3, 0, 1, 3 * kPageBlocks + kImageBlocks}));
    commit({});
    // Once more is nothing: what was wanted is there.
    read(known_);
    demote(0);
    EXPECT_EQ(change_until(project(), ResourceStage::kCommitted), (Axes{}));
}

TEST_F(ResourceProjectionTest, HostBlocksOfADemotionMustBeThereAtItsPeak) {
    build({.host_blocks = 3 * kPageBlocks + kImageBlocks - 1});
    read({world().make(192)});
    demote(0);
    EXPECT_EQ(project().residual, (Axes{0, 0, 0, 1}));
    const auto refused = ResourcePlan::seal(*projector_, outcomes_, {});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message(), "no_host_blocks: wanted 9, found 8");
    // Its pages without the image fit.
    outcomes_[0].image = ImageOutcome::kAsIs;
    commit({});
}

TEST_F(ResourceProjectionTest, ASharedPageIsDemotedOnceAndOnlyIfNobodyWantsItOnDevice) {
    build({});
    const KnownHolding base = world().make(128);
    read({base, world().extend(base, 192), world().extend(base, 192)});
    demote(1);
    EXPECT_EQ(change_until(project(), ResourceStage::kDemoted), (Axes{-1, 0, -1, kPageBlocks + kImageBlocks}));
    demote(0);
    EXPECT_EQ(project().to_host.operations, 1 + 2);
    demote(2);
    EXPECT_EQ(project().to_host.operations, 4 + 3);
    EXPECT_EQ(change_until(project(), ResourceStage::kDemoted), (Axes{-4, 0, -3, 4 * kPageBlocks + 3 * kImageBlocks}));
    commit({});
}

TEST_F(ResourceProjectionTest, MoveAndForkFollowFromWhoIsLeft) {
    build({.checkpoint_slots = 2});
    const KnownHolding source = world().make(130);
    read({source, world().alias(source)});
    const ResourceNeed need = from_source(0, 130, 5, true);
    ResourceProjection projection = project(need);
    EXPECT_EQ(projection.kv, KvActivation::kFork);
    EXPECT_EQ(projection.image, ImageActivation::kFork);
    EXPECT_TRUE(projection.copies_tail);
    EXPECT_EQ(projection.reserved_pages, 3);
    EXPECT_EQ(change_until(projection, ResourceStage::kCommitted), (Axes{3, 1, 0, 0}));
    outcomes_[1].survives = false;
    projection = project(need);
    EXPECT_EQ(projection.kv, KvActivation::kMove);
    EXPECT_EQ(projection.image, ImageActivation::kMove);
    EXPECT_FALSE(projection.needs_copies());
    EXPECT_EQ(projection.reserved_pages, 2);
    EXPECT_EQ(change_until(projection, ResourceStage::kCommitted), (Axes{2, 1, -1, 0}));
    EXPECT_EQ(projection.removed, 2);
    commit(need);
    EXPECT_EQ(world().used(), (Axes{}));
}

TEST_F(ResourceProjectionTest, AForkOfASharedSourceCopiesOneTailPage) {
    build({.checkpoint_slots = 2});
    const KnownHolding source = world().make(130);
    read({source, world().alias(source)});
    for (const bool consumes : {false, true}) {
        const ResourceNeed need = from_source(0, 130, 5, consumes);
        EXPECT_EQ(project(need).within_device, (CopyWork{1, StoresWorld::kPageBytes}));
        commit(need);
    }
    EXPECT_EQ(world().used(), (Axes{3, 0, 1, 0}));
}

TEST_F(ResourceProjectionTest, AnAlignedSourceNeedsNoCopy) {
    build({.checkpoint_slots = 2});
    const KnownHolding source = world().make(128);
    read({source, world().alias(source)});
    EXPECT_FALSE(project(from_source(0, 128, 4, false)).needs_copies());
    commit(from_source(0, 128, 4, false));
    read({source, known_[1]});
    EXPECT_FALSE(project(from_source(0, 128, 4, true)).needs_copies());
    commit(from_source(0, 128, 4, true));
}

TEST_F(ResourceProjectionTest, AMoveTakesTheTailsHostReplicaAndTheImagesWithIt) {
    build({});
    const KnownHolding source = world().make(130);
    for (const std::int64_t page : {0, 2}) world().page_to_host(world().page_at(source.holding, page));
    world().image_to_host(source.holding);
    read({source});
    const ResourceNeed need = from_source(0, 130, 3, true);
    EXPECT_EQ(change_until(project(need), ResourceStage::kActivating), (Axes{}));
    EXPECT_EQ(change_until(project(need), ResourceStage::kCommitted), (Axes{0, 1, -1, -kPageBlocks - kImageBlocks}));
    outcomes_[0].drops_host = true;
    EXPECT_EQ(change_until(project(need), ResourceStage::kReleased), (Axes{0, 0, 0, -kPageBlocks}));
    commit(need);
}

TEST_F(ResourceProjectionTest, ASourceOnHostIsRestoredStraightIntoUse) {
    for (const bool consumes : {false, true}) {
        for (const bool drops_host : {false, true}) {
            build({.checkpoint_slots = 1});
            const KnownHolding source = world().make(130);
            world().to_host(source.holding);
            read({source});
            outcomes_[0].drops_host = drops_host;
            const ResourceNeed need = from_source(0, 130, 4, consumes);
            const ResourceProjection projection = project(need);
            EXPECT_EQ(projection.image, ImageActivation::kRestore);
            EXPECT_EQ(projection.to_device.operations, 3 + 1);
            EXPECT_EQ(projection.copies_tail, !consumes);
            EXPECT_EQ(change_until(projection, ResourceStage::kRestoring), (Axes{3, 0, 0, 0}));
            commit(need);
        }
    }
}

TEST_F(ResourceProjectionTest, AnImageIsRestoredFromAnotherHoldersOnlyReplica) {
    build({});
    const KnownHolding source = world().make(64);
    world().to_host(source.holding);
    read({source, world().alias(source)});
    const ResourceNeed need = from_source(0, 64, 2, true);
    EXPECT_EQ(change_until(project(need), ResourceStage::kCommitted), (Axes{2, 1, 0, 0}));
    outcomes_[1].survives = false;
    EXPECT_EQ(change_until(project(need), ResourceStage::kCommitted), (Axes{2, 1, 0, -kImageBlocks}));
    commit(need);
}

TEST_F(ResourceProjectionTest, AConsumedSourceThatIsCutGivesTheRestOnlyAtTheEnd) {
    build(kNoImages);
    const KnownHolding source = world().make(5 * 64);
    read({source});
    const ResourceNeed need = from_source(0, 100, 2, true);
    const ResourceProjection projection = project(need);
    EXPECT_EQ(projection.kv, KvActivation::kFork);
    EXPECT_TRUE(projection.copies_tail);
    EXPECT_EQ(projection.peak, (Axes{6, 0, 0, 0}));
    EXPECT_EQ(change_until(projection, ResourceStage::kCommitted), (Axes{-3, 0, 0, 0}));
    commit(need);
    EXPECT_EQ(world().used(), (Axes{}));
}

TEST_F(ResourceProjectionTest, ACutSourceThatOthersSeeGivesNothing) {
    build(kNoImages);
    const KnownHolding source = world().make(5 * 64);
    read({source, world().alias(source, 4 * 64 + 1), world().alias(source, 64)});
    const ResourceNeed need = from_source(0, 128, 2, true);
    EXPECT_EQ(change_until(project(need), ResourceStage::kCommitted), (Axes{0, 0, 0, 0}));
    outcomes_[1].survives = false;
    EXPECT_EQ(change_until(project(need), ResourceStage::kReleased), (Axes{}));
    EXPECT_EQ(change_until(project(need), ResourceStage::kCommitted), (Axes{-3, 0, 0, 0}));
    commit(need);
}

TEST_F(ResourceProjectionTest, ATailIsOwnOnceAllOthersAreCutBelowIt) {
    build(kNoImages);
    const KnownHolding source = world().make(130);
    read({source, world().alias(source)});
    const ResourceNeed need = from_source(0, 130, 3, true);
    EXPECT_EQ(project(need).kv, KvActivation::kFork);
    outcomes_[1].frontier = 128;
    outcomes_[1].device_pages = 2;
    EXPECT_EQ(project(need).kv, KvActivation::kMove);
    commit(need);
}

TEST_F(ResourceProjectionTest, ANewSequenceFindsItsPlaceOnlyAfterTheDemotions) {
    build({.pages = 6, .active_slots = 1, .checkpoint_slots = 2});
    read({world().make(192), world().make(130)});
    EXPECT_EQ(project(root(2)).residual, (Axes{2, 0, 0, 0}));
    const auto refused = ResourcePlan::seal(*projector_, outcomes_, root(2));
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().message(), "no_pages: wanted 8, found 6");
    outcomes_[0].device_pages = 2;
    EXPECT_EQ(project(root(2)).residual, (Axes{1, 0, 0, 0}));
    outcomes_[1].survives = false;
    EXPECT_TRUE(project(root(4)).fits());
    commit(root(4));
}

// The picture of docs/design/transactions.md.
TEST_F(ResourceProjectionTest, AnAdmissionUnderPressureGoesThroughTheStatesOfTheDesignPage) {
    build({.pages = 10, .active_slots = 2, .checkpoint_slots = 2, .host_blocks = 16});
    const KnownHolding resumed = world().make(130);
    world().to_host(resumed.holding);
    const KnownHolding recent = world().make(200);
    const KnownHolding old = world().make(130);
    KnownSequence running = world().open(3);
    world().compute(running, 100);
    read({resumed, recent, old});
    const ResourceNeed need = from_source(0, 130, 5, true);
    EXPECT_EQ(project(need).residual, (Axes{5, 0, 0, 0}));
    demote(1);
    EXPECT_EQ(project(need).residual, (Axes{1, 0, 0, 4}));
    outcomes_[1] = domain_->identity_of(1);
    outcomes_[1].device_pages = 2;
    outcomes_[2].survives = false;
    const ResourceProjection projection = project(need);
    const std::array<Axes, 7> stages = {Axes{10, 1, 2, 9}, Axes{7, 1, 1, 9},  Axes{7, 1, 1, 13}, Axes{5, 1, 1, 13},
                                        Axes{8, 1, 1, 13}, Axes{8, 2, 1, 13}, Axes{10, 2, 1, 8}};
    EXPECT_EQ(projection.used, stages);
    EXPECT_EQ(projection.peak, (Axes{10, 2, 2, 13}));
    commit(need);
    world().expect_shows(running);
}

TEST_F(ResourceProjectionTest, RoomIsLeftForWhatFollows) {
    build({.active_slots = 1, .checkpoint_slots = 1});
    read({world().make(64)});
    ResourceNeed need;
    need.room.image_slots_checkpoint = 1;
    EXPECT_EQ(project(need).residual, (Axes{0, 0, 1, 0}));
    EXPECT_EQ(ResourcePlan::seal(*projector_, outcomes_, need).error().message(), "no_image_slots: wanted 2, found 1");
    outcomes_[0].image = ImageOutcome::kHostOnly;
    commit(need);
    EXPECT_EQ(world().images->checkpoint_slots_free(), 1);
}

TEST_F(ResourceProjectionTest, AnImageKeepsTheReplicasThatAnybodyWants) {
    build({});
    const KnownHolding first = world().make(64);
    world().image_to_host(first.holding);
    read({first, world().alias(first)});
    outcomes_[0].image = ImageOutcome::kHostOnly;
    EXPECT_EQ(change_until(project(), ResourceStage::kReleased), (Axes{}));
    outcomes_[1].image = ImageOutcome::kDeviceOnly;
    EXPECT_EQ(change_until(project(), ResourceStage::kReleased), (Axes{}));
    outcomes_[0].image = ImageOutcome::kDeviceOnly;
    EXPECT_EQ(change_until(project(), ResourceStage::kReleased), (Axes{0, 0, 0, -kImageBlocks}));
    outcomes_[0].image = outcomes_[1].image = ImageOutcome::kHostOnly;
    EXPECT_EQ(change_until(project(), ResourceStage::kReleased), (Axes{0, 0, -1, 0}));
    commit({});
}

TEST_F(ResourceProjectionTest, WhatAnOpenCopyPinsIsNotChanged) {
    build({});
    const KnownHolding held = world().make(64);
    const KnownHolding other = world().make(64);
    const CopyId copy = StoresWorld::must(world().copies.start_page(world().page_at(held.holding, 0), Tier::kHost));
    read({held, other});
    outcomes_[1].survives = false;
    EXPECT_EQ(project().pins, 0);
    outcomes_[0].survives = false;
    EXPECT_EQ(project().pins, 1);
    EXPECT_EQ(ResourcePlan::seal(*projector_, outcomes_, {}).error().message(), "pinned: wanted 0, found 1");
    world().complete(copy);
    read({held, other});
    outcomes_[0].survives = false;
    commit({});
}

}  // namespace
}  // namespace ninfer
