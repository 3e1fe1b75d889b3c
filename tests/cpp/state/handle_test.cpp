#include "cpp/state/handle.h"

#include <gtest/gtest.h>

#include "tests/support/counting_new.h"

namespace ninfer {
namespace {

struct ThingTag {};
using Table = HandleTable<int, ThingTag>;

TEST(HandleTableTest, StaleAndForeignHandlesAreRefusedWithBothGenerations) {
    Table table;
    const auto first = table.insert(7);
    EXPECT_EQ(*table.find(first).value(), 7);
    EXPECT_EQ(table.erase(first), 7);
    EXPECT_EQ(table.find(first).error().wanted, 1);
    EXPECT_EQ(table.find(first).error().found, 2);
    const auto second = table.insert(8);
    EXPECT_EQ(second.slot(), first.slot());
    EXPECT_EQ(table.find(first).error().kind, RefusalKind::kStaleHandle);
    EXPECT_EQ(table.find({}).error().wanted, 0);  // none is never valid
    EXPECT_EQ(table.find({std::uint64_t{1} << 32 | 99}).error().found, 0);
    EXPECT_EQ(table.find({std::uint64_t{9} << 32}).error().found, 2);
    EXPECT_EQ(table.size(), 1);
}

TEST(HandleTableTest, VisitsItemsInOrderOfSlots) {
    Table table;
    const auto a = table.insert(1);
    table.insert(2);
    table.insert(3);
    table.erase(a);
    std::vector<int> seen;
    table.for_each([&](Table::ItemHandle handle, int item) {
        EXPECT_EQ(table.at(handle), item);
        seen.push_back(item);
    });
    EXPECT_EQ(seen, (std::vector<int>{2, 3}));
}

TEST(HandleTableTest, FingerprintsShowEveryChange) {
    Table table;
    const auto print = [&] {
        Fingerprint fingerprint;
        table.add_to(fingerprint, [](Fingerprint& into, int item) { into.add(item); });
        return fingerprint.value();
    };
    const auto empty = print();
    const auto handle = table.insert(1);
    const auto one = print();
    EXPECT_NE(one, empty);
    ++table.at(handle);
    EXPECT_NE(print(), one);
    --table.at(handle);
    EXPECT_EQ(print(), one);
    table.erase(handle);
    EXPECT_NE(print(), empty);  // the generation has moved on
}

TEST(HandleTableTest, AnInsertThatFindsNoMemoryChangesNothing) {
    std::int64_t failures = 0;
    for (int items = 0; items < 9; ++items) {
        for (std::int64_t successes = 0; successes < 2; ++successes) {
            Table table;
            for (int i = 0; i < items; ++i) table.insert(i);
            testing_support::allocations_left = successes;
            bool failed = false;
            try {
                table.insert(-1);
            } catch (const std::bad_alloc&) {
                failed = true;
            }
            testing_support::allocations_left = testing_support::kUnlimited;
            if (!failed) continue;
            ++failures;
            EXPECT_EQ(table.size(), items);
            const auto next = table.insert(7);
            EXPECT_EQ(next.slot(), items);
            EXPECT_EQ(*table.find(next).value(), 7);
        }
    }
    EXPECT_LE(2, failures);
}

TEST(HandleTableTest, ErasingAllocatesNothing) {
    Table table;
    std::vector<Table::ItemHandle> handles;
    for (int i = 0; i < 100; ++i) handles.push_back(table.insert(i));
    const std::int64_t before = testing_support::allocations();
    for (const auto handle : handles) table.erase(handle);
    EXPECT_EQ(testing_support::allocations(), before);
}

TEST(HandleTableDeathTest, AtOfAStaleHandleStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    Table table;
    const auto handle = table.insert(1);
    table.erase(handle);
    EXPECT_DEATH(table.at(handle), "is stale");
    EXPECT_DEATH(table.erase(handle), "is stale");
}

}  // namespace
}  // namespace ninfer
