#include "cpp/state/host_tier.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/support/test_seed.h"

namespace ninfer {
namespace {

constexpr std::size_t kBlockBytes = 64;

struct HostTierTest : testing::Test {
    testing_support::SeedTrace trace;
    std::vector<std::byte> memory = std::vector<std::byte>(10 * kBlockBytes + 63);
    HostTier tier{memory, kBlockBytes};
};

TEST_F(HostTierTest, BlocksAreThePageOr64KiB) {
    EXPECT_EQ(HostTier::block_bytes_for(1), 64U);
    EXPECT_EQ(HostTier::block_bytes_for(64), 64U);
    EXPECT_EQ(HostTier::block_bytes_for(65), 128U);
    EXPECT_EQ(HostTier::block_bytes_for((64 << 10) - 1), 64U << 10);
    EXPECT_EQ(HostTier::block_bytes_for(786432), 64U << 10);
}

TEST_F(HostTierTest, OnlyWholeBlocksCount) {
    EXPECT_EQ(tier.blocks_total(), 10);
    EXPECT_EQ(tier.blocks_for(0), 0);
    EXPECT_EQ(tier.blocks_for(1), 1);
    EXPECT_EQ(tier.blocks_for(64), 1);
    EXPECT_EQ(tier.blocks_for(65), 2);
    HostTier nothing({memory.data(), 63}, kBlockBytes);
    EXPECT_EQ(nothing.blocks_total(), 0);
    EXPECT_EQ(nothing.allocate(1).error().kind, RefusalKind::kNoHostBlocks);
    nothing.check_invariants({});
}

TEST_F(HostTierTest, NeverMoreThanThereIs) {
    BlockList all = tier.allocate(10).value();
    const auto before = tier.fingerprint();
    const Refusal refusal = tier.allocate(1).error();
    EXPECT_EQ(refusal.kind, RefusalKind::kNoHostBlocks);
    EXPECT_EQ(refusal.wanted, 1);
    EXPECT_EQ(refusal.found, 0);
    EXPECT_EQ(tier.fingerprint(), before);
    tier.check_invariants({&all, 1});
    tier.release(all);
    EXPECT_TRUE(all.empty());
    tier.release(all);  // an empty list stays so
    EXPECT_EQ(tier.blocks_free(), 10);
    EXPECT_EQ(tier.allocate(11).error().found, 10);
}

TEST_F(HostTierTest, AnyMixFitsIfItsCountFits) {
    std::mt19937_64 random(testing_support::test_seed());
    std::vector<BlockList> lists;
    for (int step = 0; step < 2000; ++step) {
        if (!lists.empty() && random() % 2 == 0) {
            std::swap(lists[random() % lists.size()], lists.back());
            tier.release(lists.back());
            lists.pop_back();
        } else {
            const auto count = static_cast<std::int64_t>(1 + random() % 4);
            const bool fits = count <= tier.blocks_free();
            const auto list = tier.allocate(count);
            ASSERT_EQ(list.has_value(), fits);
            if (fits) lists.push_back(list.value());
        }
        tier.check_invariants(lists);
    }
}

TEST_F(HostTierTest, RecordsComeBackAsTheyWent) {
    BlockList gap = tier.allocate(1).value();
    BlockList other = tier.allocate(2).value();
    tier.release(gap);
    const BlockList list = tier.allocate(4).value();  // not in one piece
    for (const std::size_t bytes : std::initializer_list<std::size_t>{1, 63, 64, 65, 200, 256}) {
        std::vector<std::byte> record(bytes, static_cast<std::byte>(bytes));
        std::vector<std::byte> back(bytes);
        std::vector<CopySegment> segments;
        tier.append_to_host(record.data(), list, bytes, segments);
        tier.append_from_host(list, back.data(), bytes, segments);
        for (const auto& segment : segments) std::memcpy(segment.dst, segment.src, segment.bytes);
        EXPECT_EQ(back, record);
    }
    const BlockList lists[] = {other, list};
    tier.check_invariants(lists);
}

TEST(HostTierDeathTest, BrokenUseStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    std::vector<std::byte> memory(4 * kBlockBytes);
    EXPECT_DEATH(HostTier(memory, 65), "left = 1, right = 0");
    EXPECT_DEATH(HostTier(memory, 0), "left = 0, right = 0");
    HostTier tier(memory, kBlockBytes);
    EXPECT_DEATH(static_cast<void>(tier.allocate(0)), "left = 1, right = 0");
    BlockList list = tier.allocate(2).value();
    std::vector<CopySegment> segments;
    EXPECT_DEATH(tier.append_to_host(memory.data(), list, 129, segments), "left = 129, right = 128");
    BlockList copy = list;
    const BlockList twice[] = {list, list};
    EXPECT_DEATH(tier.check_invariants(twice), "in two lists");
    EXPECT_DEATH(tier.check_invariants({}), "left = 0, right = 2");
    tier.release(list);
    EXPECT_DEATH(tier.release(copy), "left = 2, right = 0");
}

}  // namespace
}  // namespace ninfer
