#pragma once

// Small stores with real bytes. Every token has four bytes in its page, drawn by the fixture and remembered per sequence
// by the test, so that what a space shows can be compared with what was written, wherever it lies.

#include <gtest/gtest.h>

#include <cstring>
#include <optional>
#include <random>
#include <vector>

#include "cpp/memory/host_buffer.h"
#include "cpp/memory/host_memory.h"
#include "cpp/state/replica_copies.h"
#include "tests/support/manual_copy_engine.h"
#include "tests/support/test_seed.h"

namespace ninfer::testing_support {

class StoresTest : public testing::Test {
   protected:
    static constexpr std::int64_t kPages = 16;
    static constexpr std::size_t kPageBytes = 4 * kPageTokens;
    static constexpr std::size_t kBlockBytes = 128;  // two blocks to a page
    static constexpr std::int64_t kBlocks = 20;
    static constexpr ImageStoreSize kImages = {.image_bytes = 320, .active_slots = 3, .checkpoint_slots = 2};
    static constexpr std::int64_t kImageBlocks = 3;

    using Tokens = std::vector<std::uint32_t>;  // what the bytes of a sequence's tokens are

    StoresTest()
        : page_memory_(kPages * kPageBytes),
          image_memory_(5 * kImages.image_bytes),
          host_memory_(kBlocks * kBlockBytes + 100),  // the rest is too little for a block
          host_({host_memory_.data(), host_memory_.size()}, kBlockBytes),
          pages_(page_memory_, kPageBytes, kPages, host_),
          images_(image_memory_, kImages, host_),
          copies_(pages_, &images_, host_, engine_),
          random_(test_seed()) {}

    void TearDown() override { copies_.check_invariants(); }

    // The call is refused with these values, and nothing at all has changed.
    template <typename Call>
    void expect_refused(Call&& call, RefusalKind kind, std::int64_t wanted, std::int64_t found) {
        const std::uint64_t before = copies_.fingerprint_of_all();
        const auto result = call();
        ASSERT_FALSE(result.has_value()) << "not refused; wanted " << to_string(kind);
        EXPECT_EQ(to_string(result.error().kind), to_string(kind));
        EXPECT_EQ(result.error().wanted, wanted);
        EXPECT_EQ(result.error().found, found);
        EXPECT_EQ(copies_.fingerprint_of_all(), before);
        copies_.check_invariants();
    }
    template <typename T>
    T ok(Result<T, Refusal> result) {
        if (!result) {
            ADD_FAILURE() << result.error().message();
            std::abort();
        }
        copies_.check_invariants();
        return std::move(result).value();
    }

    // Computes tokens of an active space up to `end`: map, write, commit; remembered in `tokens`.
    void compute(SpaceId space, Tokens& tokens, std::int64_t end) {
        ok(pages_.map(space, end));
        const auto table = pages_.page_table(space);
        for (auto position = std::ssize(tokens); position < end; ++position) {
            tokens.push_back(static_cast<std::uint32_t>(random_()));
            std::byte* page = page_memory_.data() +
                              static_cast<std::size_t>(table[static_cast<std::size_t>(position / 64)]) * kPageBytes;
            std::memcpy(page + position % 64 * 4, &tokens.back(), 4);
        }
        ok(pages_.commit(space, end));
    }
    // A frozen space of that many tokens.
    SpaceId frozen_of(Tokens& tokens, std::int64_t count) {
        const SpaceId space = ok(pages_.open((count + 63) / 64));
        compute(space, tokens, count);
        ok(pages_.finish(space));
        return space;
    }

    // Every replica of every page of the space holds the first frontier tokens.
    void expect_shows(SpaceId space, const Tokens& tokens) {
        const std::int64_t frontier = pages_.find(space).value()->frontier;
        ASSERT_LE(frontier, std::ssize(tokens));
        ASSERT_TRUE(pages_.valid(space).value());
        std::int64_t begin = 0;
        pages_.for_each_page(space, [&](PageId, const LogicalPage& page) {
            const auto count = std::clamp<std::int64_t>(frontier - begin, 0, 64);
            const auto* expected = tokens.data() + begin;
            if (page.on_device()) {
                const std::byte* data = page_memory_.data() + static_cast<std::size_t>(page.device_page) * kPageBytes;
                EXPECT_EQ(std::memcmp(data, expected, static_cast<std::size_t>(count) * 4), 0) << "page at " << begin;
            }
            if (page.on_host()) {
                const auto record = host_bytes(page.host, kPageBytes);
                EXPECT_EQ(std::memcmp(record.data(), expected, static_cast<std::size_t>(count) * 4), 0);
            }
            begin += 64;
        });
    }
    std::vector<std::byte> host_bytes(const BlockList& list, std::size_t bytes) {
        std::vector<std::byte> record(bytes);
        std::vector<CopySegment> segments;
        host_.append_from_host(list, record.data(), bytes, segments);
        for (const auto& segment : segments) std::memcpy(segment.dst, segment.src, segment.bytes);
        return record;
    }

    std::vector<PageId> pages_of_space(SpaceId space) {
        std::vector<PageId> pages;
        pages_.for_each_page(space, [&](PageId page, const LogicalPage&) { pages.push_back(page); });
        return pages;
    }
    const LogicalPage& page(PageId id) { return *pages_.find(id).value(); }

    // Runs one copy to its end.
    ImageId complete(CopyId copy) {
        engine_.complete_all();
        copies_.poll(SIZE_MAX);
        return ok(copies_.publish(copy));
    }
    void settle(SpaceId space) { complete(ok(copies_.start_tail(space))); }
    void place_on_host(PageId page) { complete(ok(copies_.start_page(page, Tier::kHost))); }
    void move_to_host(SpaceId space) {
        for (const PageId page : pages_of_space(space)) {
            place_on_host(page);
            ok(pages_.drop(page, Tier::kDevice));
        }
    }
    SpaceFacts facts(SpaceId space) { return pages_.facts(space).value(); }

    SeedTrace trace_;
    HostMemory page_memory_;
    HostMemory image_memory_;
    HostBuffer host_memory_;
    HostTier host_;
    PagedKvStore pages_;
    StateImageStore images_;
    ManualCopyEngine engine_;
    ReplicaCopies copies_;
    std::mt19937_64 random_;
};

}  // namespace ninfer::testing_support
