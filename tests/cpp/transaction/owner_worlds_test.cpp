// Worlds of three owners with two checkpoints each, at different frontiers, on six pages and three image slots. In each, one
// axis is what targets are refused for, and what others just fit.

#include "tests/cpp/transaction/small_worlds_fixture.h"

namespace ninfer {
namespace {

using testing_support::KnownHolding;
using testing_support::SmallWorldsTest;
using testing_support::StoresWorld;

using testing_support::WorldSizes;

class OwnerWorldsTest : public SmallWorldsTest {
   protected:
    void try_owners(const WorldSizes& sizes, MakeHoldings make) {
        try_all({.sizes = sizes, .make = make, .grain = Grain::kOwner});
    }
};

void put_image_on_host(StoresWorld& world, const KnownHolding& known) {
    if (world.images == nullptr) return;
    world.image_to_host(known.holding);
    world.image_off_device(known.holding);
}

// Frontiers 64 and 100, 70 and 64, 64 and 30, on five pages. The first owner has an image at each of its frontiers, both on
// Host; the others have one each, on Device.
std::vector<KnownHolding> three_owners(StoresWorld& world) {
    const KnownHolding anchor = world.make(64);
    const KnownHolding endpoint = world.extend(anchor, 100);
    put_image_on_host(world, anchor);
    put_image_on_host(world, endpoint);
    const KnownHolding second = world.make(70);
    const KnownHolding third = world.make(64);
    return {anchor, endpoint, world.alias(second, 64), second, world.alias(third, 30), third};
}

std::vector<KnownHolding> three_owners_beside_a_sequence(StoresWorld& world) {
    auto owners = three_owners(world);
    world.open(1);
    return owners;
}

TEST_F(OwnerWorldsTest, DevicePagesAndCheckpointSlotsBind) {
    try_owners({.pages = 6, .active_slots = 1, .checkpoint_slots = 2, .host_blocks = 40}, three_owners);
    expect_bound(&ResourceAxes::device_pages);
    expect_bound(&ResourceAxes::image_slots_checkpoint);
}

TEST_F(OwnerWorldsTest, HostBlocksBind) {
    try_owners({.pages = 6, .active_slots = 1, .checkpoint_slots = 2, .host_blocks = 13}, three_owners);
    expect_bound(&ResourceAxes::host_blocks);
}

TEST_F(OwnerWorldsTest, TheActiveSlotBinds) {
    try_owners({.pages = 6, .active_slots = 1, .checkpoint_slots = 2, .host_blocks = 40},
               three_owners_beside_a_sequence);
    expect_bound(&ResourceAxes::image_slots_active);
}

TEST_F(OwnerWorldsTest, PagesAndBlocksBindWithoutImages) {
    try_owners({.pages = 6, .active_slots = 0, .checkpoint_slots = 0, .host_blocks = 7}, three_owners);
    expect_bound(&ResourceAxes::device_pages);
    expect_bound(&ResourceAxes::host_blocks);
}

}  // namespace
}  // namespace ninfer
