#pragma once

// What every copy engine keeps (cpp/memory/copy_engine.h). An implementation instantiates the suite with a type that makes
// one:  struct Maker { std::unique_ptr<CopyEngine> make(); };  The engine must not fail copies of its own accord, and must
// be done after kMostPolls polls without a limit. How copies end, failures among them: copy_ending_contract.h.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/base/assert.h"
#include "cpp/memory/copy_engine.h"

namespace ninfer::testing_support {

template <typename Maker>
class CopyEngineContract : public testing::Test {
   protected:
    static constexpr int kMostPolls = 1000;

    CopyEngineContract() : engine_(maker_.make()) {
        for (std::size_t i = 0; i < kBytes; ++i) source_[i] = static_cast<std::byte>(i * 7 + i / 256);
    }

    // Every second piece of 5 bytes, so that gaps show.
    std::vector<CopySegment> pieces() {
        std::vector<CopySegment> segments;
        for (std::size_t begin = 0; begin + 5 <= kBytes; begin += 10)
            segments.push_back({destination_.data() + begin, source_.data() + begin, 5});
        return segments;
    }
    void expect_pieces_moved() const {
        for (std::size_t i = 0; i < kBytes; ++i)
            ASSERT_EQ(destination_[i], i % 10 < 5 ? source_[i] : std::byte{0}) << "byte " << i;
    }
    CopyStatus finish(CopyTicket ticket, std::size_t bytes_per_poll) {
        for (int i = 0; i < kMostPolls && engine_->status(ticket) == CopyStatus::kPending; ++i)
            engine_->poll(bytes_per_poll);
        return engine_->status(ticket);
    }

    static constexpr std::size_t kBytes = 2000;
    Maker maker_;
    std::unique_ptr<CopyEngine> engine_;
    std::vector<std::byte> source_ = std::vector<std::byte>(kBytes);
    std::vector<std::byte> destination_ = std::vector<std::byte>(kBytes);
};

TYPED_TEST_SUITE_P(CopyEngineContract);

TYPED_TEST_P(CopyEngineContract, MovesExactlyTheSegments) {
    std::vector<CopySegment> segments = this->pieces();
    const CopyTicket ticket = this->engine_->submit(segments);
    segments.clear();  // the engine has its own list
    EXPECT_NE(ticket.value, 0U);
    ASSERT_EQ(this->finish(ticket, SIZE_MAX), CopyStatus::kDone);
    this->expect_pieces_moved();
    this->engine_->forget(ticket);
}

TYPED_TEST_P(CopyEngineContract, AnyLimitPerPollGetsThere) {
    for (const std::size_t limit : std::initializer_list<std::size_t>{3, 5, 64, 999}) {
        std::fill(this->destination_.begin(), this->destination_.end(), std::byte{0});
        const CopyTicket ticket = this->engine_->submit(this->pieces());
        ASSERT_EQ(this->finish(ticket, limit), CopyStatus::kDone);
        this->expect_pieces_moved();
        this->engine_->forget(ticket);
    }
}

TYPED_TEST_P(CopyEngineContract, TicketsAreNeverGivenTwice) {
    std::vector<CopyTicket> seen;
    for (int i = 0; i < 20; ++i) {
        const CopyTicket ticket = this->engine_->submit(this->pieces());
        EXPECT_EQ(std::count(seen.begin(), seen.end(), ticket), 0);
        seen.push_back(ticket);
        ASSERT_EQ(this->finish(ticket, SIZE_MAX), CopyStatus::kDone);
        this->engine_->forget(ticket);
    }
}

TYPED_TEST_P(CopyEngineContract, ACopyOfNothingIsDone) {
    const CopyTicket empty = this->engine_->submit({});
    const CopyTicket no_bytes = this->engine_->submit(std::vector<CopySegment>{{nullptr, nullptr, 0}});
    EXPECT_EQ(this->finish(empty, SIZE_MAX), CopyStatus::kDone);
    EXPECT_EQ(this->finish(no_bytes, SIZE_MAX), CopyStatus::kDone);
    this->engine_->forget(no_bytes);
    this->engine_->forget(empty);
}

TYPED_TEST_P(CopyEngineContract, AForgottenCopyIsOutOfTheWayOfOthers) {
    for (const bool empty : {true, false}) {
        const CopyTicket first = this->engine_->submit(empty ? std::vector<CopySegment>{} : this->pieces());
        // An engine may know at once that there is nothing to do.
        ASSERT_EQ(this->finish(first, SIZE_MAX), CopyStatus::kDone);
        this->engine_->forget(first);
        this->engine_->poll(SIZE_MAX);
        std::fill(this->destination_.begin(), this->destination_.end(), std::byte{0});
        const CopyTicket second = this->engine_->submit(this->pieces());
        ASSERT_EQ(this->finish(second, SIZE_MAX), CopyStatus::kDone);
        this->expect_pieces_moved();
        this->engine_->forget(second);
    }
}

// A cancelled copy fails or arrives; either way its memory is left alone afterwards, and others go on.
TYPED_TEST_P(CopyEngineContract, CancelledCopiesEndAndLetGo) {
    for (const std::size_t first_poll : std::initializer_list<std::size_t>{0, 7, SIZE_MAX}) {
        std::vector<std::byte> other(this->kBytes);
        const CopyTicket cancelled = this->engine_->submit(this->pieces());
        const CopyTicket kept =
            this->engine_->submit(std::vector<CopySegment>{{other.data(), this->source_.data(), this->kBytes}});
        this->engine_->poll(first_poll);
        const CopyStatus before = this->engine_->status(cancelled);
        this->engine_->cancel(cancelled);
        if (before != CopyStatus::kPending) {
            EXPECT_EQ(this->engine_->status(cancelled), before);
        }
        const CopyStatus ended = this->finish(cancelled, 64);
        ASSERT_NE(ended, CopyStatus::kPending);
        this->engine_->cancel(cancelled);
        EXPECT_EQ(this->engine_->status(cancelled), ended);
        this->engine_->forget(cancelled);
        std::fill(this->destination_.begin(), this->destination_.end(), std::byte{0});
        ASSERT_EQ(this->finish(kept, 64), CopyStatus::kDone);
        EXPECT_EQ(other, this->source_);
        EXPECT_EQ(std::count(this->destination_.begin(), this->destination_.end(), std::byte{0}),
                  std::ssize(this->destination_));
        this->engine_->forget(kept);
    }
}

// An engine of the processor moves no more than the limit; one of hardware moves nothing in the caller's time.
TYPED_TEST_P(CopyEngineContract, APollWithoutALimitLeftMovesNothing) {
    const CopyTicket ticket = this->engine_->submit(this->pieces());
    const std::vector<std::byte> before = this->destination_;
    for (int i = 0; i < 10; ++i) this->engine_->poll(0);
    EXPECT_EQ(this->engine_->status(ticket), CopyStatus::kPending);
    EXPECT_EQ(this->destination_, before);
    ASSERT_EQ(this->finish(ticket, SIZE_MAX), CopyStatus::kDone);
    this->engine_->forget(ticket);
}

TYPED_TEST_P(CopyEngineContract, MisuseStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const CopyTicket ticket = this->engine_->submit(this->pieces());
    EXPECT_DEATH(this->engine_->forget(ticket), "before it has ended");
    ASSERT_EQ(this->finish(ticket, SIZE_MAX), CopyStatus::kDone);
    this->engine_->forget(ticket);
    EXPECT_DEATH(static_cast<void>(this->engine_->status(ticket)), "forgotten or never was");
    EXPECT_DEATH(this->engine_->forget(ticket), "forgotten or never was");
    EXPECT_DEATH(static_cast<void>(this->engine_->status({})), "forgotten or never was");
}

REGISTER_TYPED_TEST_SUITE_P(CopyEngineContract, MovesExactlyTheSegments, AnyLimitPerPollGetsThere,
                            TicketsAreNeverGivenTwice, ACopyOfNothingIsDone, AForgottenCopyIsOutOfTheWayOfOthers,
                            CancelledCopiesEndAndLetGo, APollWithoutALimitLeftMovesNothing, MisuseStopsTheProcess);

}  // namespace ninfer::testing_support
