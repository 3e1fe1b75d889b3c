// Worlds of two or three holdings, page by page.

#include "tests/cpp/transaction/small_worlds_fixture.h"

namespace ninfer {
namespace {

using testing_support::KnownHolding;
using testing_support::KnownSequence;
using testing_support::SmallWorldsTest;
using testing_support::StoresWorld;

TEST_F(SmallWorldsTest, AliasesAndAStranger) {
    try_all({.sizes = {.pages = 4, .active_slots = 1, .checkpoint_slots = 2, .host_blocks = 12},
             .make = [](StoresWorld& world) {
                 const KnownHolding first = world.make(100);
                 return std::vector{first, world.alias(first), world.make(64)};
             }});
}

TEST_F(SmallWorldsTest, BranchesOfOneBeginning) {
    try_all({.sizes = {.pages = 4, .active_slots = 1, .checkpoint_slots = 2, .host_blocks = 15},
             .make = [](StoresWorld& world) {
                 const KnownHolding base = world.make(64);
                 const KnownHolding left = world.extend(base, 100);
                 world.image_to_host(left.holding);
                 world.image_off_device(left.holding);
                 return std::vector{base, left, world.extend(base, 128)};
             }});
}

TEST_F(SmallWorldsTest, CutsWithoutImages) {
    try_all({.sizes = {.pages = 5, .active_slots = 0, .checkpoint_slots = 0, .host_blocks = 8},
             .make = [](StoresWorld& world) {
                 const KnownHolding whole = world.make(140);
                 return std::vector{whole, world.alias(whole, 128), world.make(50)};
             }});
}

TEST_F(SmallWorldsTest, AnActiveSequenceAndAHoldingOutsideLookOn) {
    try_all({.sizes = {.pages = 5, .active_slots = 2, .checkpoint_slots = 1, .host_blocks = 9},
             .make = [](StoresWorld& world) {
                 const KnownHolding base = world.make(140);
                 KnownSequence reader = world.fork(base, 140, 1);
                 world.compute(reader, 145);
                 world.alias(base, 64);
                 return std::vector{base, world.alias(base)};
             }});
}

}  // namespace
}  // namespace ninfer
