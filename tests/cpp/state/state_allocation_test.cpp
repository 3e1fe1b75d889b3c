// What happens in every decode round, and what gives memory back or takes Host blocks, allocates no heap memory.

#include "tests/cpp/state/stores_fixture.h"
#include "tests/support/counting_new.h"

namespace ninfer {
namespace {

using StateAllocationTest = testing_support::StoresTest;

template <typename Work>
std::int64_t allocations_of(Work&& work) {
    const std::int64_t before = testing_support::allocations();
    work();
    return testing_support::allocations() - before;
}

TEST_F(StateAllocationTest, GrowthInsideTheReservationAllocatesNothing) {
    Tokens tokens;
    const SpaceId source = frozen_of(tokens, 100);
    const SpaceId other = ok(pages_.share(source, 100));
    const SpaceId opened = ok(pages_.open(3));
    const SpaceId forked = ok(pages_.fork(source, 70, 3));
    settle(forked);
    const SpaceId consumed = ok(pages_.consume(source, 3));
    settle(consumed);
    const SpaceId in_place = ok(pages_.consume(other, 1));
    Tokens captured;
    const SpaceId frozen = ok(pages_.open(3));
    compute(frozen, captured, 10);
    static_cast<void>(ok(pages_.freeze(frozen)));
    settle(frozen);
    const ImageId image = ok(images_.open());
    for (const SpaceId space : {opened, forked, consumed, in_place, frozen}) {
        const SpaceFacts start = facts(space);
        const std::int64_t end = (start.pages + start.reserved) * 64;
        EXPECT_EQ(allocations_of([&] {
                      for (std::int64_t token = start.frontier + 1; token <= end; ++token) {
                          static_cast<void>(pages_.map(space, token));
                          static_cast<void>(pages_.commit(space, token));
                          static_cast<void>(images_.commit(image));
                          static_cast<void>(pages_.page_table(space));
                          static_cast<void>(pages_.facts(space));
                          copies_.poll(CopyEngine::kDecodingBudgetBytes);
                      }
                  }),
                  0);
        EXPECT_EQ(facts(space).frontier, end);
    }
}

TEST_F(StateAllocationTest, ReleasingAllocatesNothing) {
    std::vector<SpaceId> spaces;
    std::vector<ImageId> images;
    for (int i = 0; i < 4; ++i) {
        spaces.push_back(ok(pages_.open(2)));
        static_cast<void>(ok(pages_.map(spaces.back(), 128)));
    }
    images.push_back(ok(images_.open()));
    images.push_back(ok(images_.open()));
    EXPECT_EQ(allocations_of([&] {
                  for (const SpaceId space : spaces) static_cast<void>(pages_.release(space));
                  for (const ImageId image : images) static_cast<void>(images_.release(image));
              }),
              0);
}

TEST_F(StateAllocationTest, CancellingAllocatesNothing) {
    Tokens tokens;
    const SpaceId source = frozen_of(tokens, 4 * 64);
    std::vector<CopyId> open;
    for (const PageId page : pages_of_space(source)) open.push_back(ok(copies_.start_page(page, Tier::kHost)));
    EXPECT_EQ(allocations_of([&] {
                  for (const CopyId copy : open) static_cast<void>(copies_.cancel(copy));
              }),
              0);
    EXPECT_EQ(copies_.draining_copies(), 4);
    engine_.fail_all();
    EXPECT_EQ(allocations_of([&] { copies_.poll(0); }), 0);
    EXPECT_EQ(copies_.draining_copies(), 0);
}

TEST_F(StateAllocationTest, HostBlocksComeWithoutHeapMemory) {
    BlockList list;
    EXPECT_EQ(allocations_of([&] {
                  list = host_.allocate(7).value();
                  host_.release(list);
              }),
              0);
}

TEST_F(StateAllocationTest, TheCounterCounts) {
    // It outlives the call: an allocation that nobody sees may be left out by the compiler.
    std::unique_ptr<int> kept;
    EXPECT_EQ(allocations_of([&] { kept = std::make_unique<int>(1); }), 1);
    EXPECT_EQ(*kept, 1);
}

}  // namespace
}  // namespace ninfer
