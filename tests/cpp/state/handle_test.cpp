#include "cpp/state/handle.h"

#include <gtest/gtest.h>

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
