#pragma once

// What a copy engine keeps of memory however its copies end (cpp/memory/copy_engine.h): for engines that fail copies of
// their own accord too. An implementation instantiates the suite with a type that makes one:
//   struct Maker {
//       static constexpr bool kMovesInPoll;  // moving takes the caller's time: bytes move in polls alone
//       std::unique_ptr<CopyEngine> make();
//   };
// Its copies must have ended after kMostPolls polls without a limit.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "cpp/memory/copy_engine.h"
#include "tests/support/test_seed.h"

namespace ninfer::testing_support {

template <typename Maker>
class CopyEndingContract : public testing::Test {
   protected:
    using Bytes = std::vector<std::byte>;

    static constexpr int kMostPolls = 1000;
    static constexpr std::size_t kBytes = 600;
    static constexpr std::byte kBefore{0x11};
    static constexpr std::byte kAfter{0x22};

    // Every second piece of 7 bytes, so that gaps show.
    struct Copy {
        Bytes source;
        Bytes destination = Bytes(kBytes, kBefore);
        CopyTicket ticket;

        static bool is_gap(std::size_t i) { return i % 14 >= 7; }
        std::vector<CopySegment> segments() {
            std::vector<CopySegment> pieces;
            for (std::size_t begin = 0; begin + 7 <= kBytes; begin += 14)
                pieces.push_back({destination.data() + begin, source.data() + begin, 7});
            return pieces;
        }
    };

    CopyEndingContract() : random_(test_seed()), engine_(maker_.make()) {}

    std::vector<Copy> submit(std::size_t count) {
        std::vector<Copy> copies(count);
        for (Copy& copy : copies) {
            copy.source.resize(kBytes);
            for (std::byte& byte : copy.source) byte = static_cast<std::byte>(random_());
            copy.ticket = engine_->submit(copy.segments());
        }
        return copies;
    }
    bool is_pending(const Copy& copy) const { return engine_->status(copy.ticket) == CopyStatus::kPending; }
    void finish(const std::vector<Copy>& copies) {
        const auto pending = [&](const Copy& copy) { return is_pending(copy); };
        for (int i = 0; i < kMostPolls && std::ranges::any_of(copies, pending); ++i) engine_->poll(SIZE_MAX);
        ASSERT_TRUE(std::ranges::none_of(copies, pending));
    }
    void forget(const std::vector<Copy>& copies) {
        for (const Copy& copy : copies) engine_->forget(copy.ticket);
    }

    SeedTrace trace_;
    std::mt19937_64 random_;
    Maker maker_;
    std::unique_ptr<CopyEngine> engine_;
};

TYPED_TEST_SUITE_P(CopyEndingContract);

TYPED_TEST_P(CopyEndingContract, ADoneCopyIsWholeAndNothingElseIsWritten) {
    auto copies = this->submit(40);
    std::vector<std::vector<std::byte>> sources;
    for (const auto& copy : copies) sources.push_back(copy.source);
    this->finish(copies);
    for (std::size_t at = 0; at < copies.size(); ++at) {
        const auto& copy = copies[at];
        EXPECT_EQ(copy.source, sources[at]);
        const bool done = this->engine_->status(copy.ticket) == CopyStatus::kDone;
        for (std::size_t i = 0; i < copy.destination.size(); ++i) {
            const bool is_moved = !copy.is_gap(i) && i / 14 * 14 + 7 <= copy.destination.size();
            if (!is_moved) {
                ASSERT_EQ(copy.destination[i], this->kBefore) << "byte " << i;
            } else if (done) {
                ASSERT_EQ(copy.destination[i], copy.source[i]) << "byte " << i;
            }
        }
    }
    this->forget(copies);
}

// Whoever sees kDone or kFailed may write, and read, source and destination at once: forgotten or not, and whatever the
// engine does afterwards.
TYPED_TEST_P(CopyEndingContract, AnEndedCopyIsLeftAlone) {
    auto copies = this->submit(40);
    std::vector<bool> ended(copies.size());
    for (int polls = 0; polls < this->kMostPolls && std::ranges::count(ended, false) > 0; ++polls) {
        this->engine_->poll(this->random_() % 1000);
        if (polls % 10 == 9) this->engine_->poll(SIZE_MAX);
        for (std::size_t i = 0; i < copies.size(); ++i) {
            if (ended[i] || this->is_pending(copies[i])) continue;
            ended[i] = true;
            std::ranges::fill(copies[i].source, this->kAfter);
            std::ranges::fill(copies[i].destination, this->kAfter);
            if (i % 2 == 0) this->engine_->forget(copies[i].ticket);
        }
    }
    ASSERT_EQ(std::ranges::count(ended, false), 0);
    auto others = this->submit(10);
    this->finish(others);
    this->forget(others);
    for (std::size_t i = 0; i < copies.size(); ++i) {
        for (const auto* bytes : {&copies[i].source, &copies[i].destination})
            EXPECT_EQ(std::ranges::count(*bytes, this->kAfter), std::ssize(*bytes)) << "copy " << i;
        if (i % 2 != 0) this->engine_->forget(copies[i].ticket);
    }
}

TYPED_TEST_P(CopyEndingContract, AStatusThatHasEndedStays) {
    const auto copies = this->submit(40);
    this->finish(copies);
    for (const auto& copy : copies) {
        const CopyStatus status = this->engine_->status(copy.ticket);
        this->engine_->cancel(copy.ticket);
        this->engine_->poll(SIZE_MAX);
        EXPECT_EQ(this->engine_->status(copy.ticket), status);
    }
    this->forget(copies);
}

// The limit is what a poll may cost: it counts the bytes of all copies together, those that fail later among them.
TYPED_TEST_P(CopyEndingContract, APollMovesNoMoreThanItsLimit) {
    if constexpr (TypeParam::kMovesInPoll) {
        auto copies = this->submit(40);
        auto before = copies;
        for (int polls = 0; polls < 200; ++polls) {
            const std::size_t limit = this->random_() % 400;
            this->engine_->poll(limit);
            std::size_t changed = 0;
            for (std::size_t i = 0; i < copies.size(); ++i) {
                for (std::size_t at = 0; at < copies[i].destination.size(); ++at)
                    if (copies[i].destination[at] != before[i].destination[at]) ++changed;
                before[i].destination = copies[i].destination;
            }
            ASSERT_LE(changed, limit) << "poll " << polls;
        }
        this->finish(copies);
        this->forget(copies);
    } else {
        // It only looks: a poll of one byte is as good as any.
        const auto copies = this->submit(40);
        for (int i = 0; i < this->kMostPolls; ++i) this->engine_->poll(1);
        for (const auto& copy : copies) EXPECT_FALSE(this->is_pending(copy));
        this->forget(copies);
    }
}

REGISTER_TYPED_TEST_SUITE_P(CopyEndingContract, ADoneCopyIsWholeAndNothingElseIsWritten, AnEndedCopyIsLeftAlone,
                            AStatusThatHasEndedStays, APollMovesNoMoreThanItsLimit);

}  // namespace ninfer::testing_support
