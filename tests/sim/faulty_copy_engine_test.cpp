#include "tests/sim/faulty_copy_engine.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "tests/contract/copy_ending_contract.h"
#include "tests/contract/copy_engine_contract.h"
#include "tests/support/test_seed.h"

namespace ninfer::testing_support {
namespace {

using sim::FaultyCopyEngine;

// Slow and out of order, but it does not fail: it keeps the contract of every engine.
struct MakeSlowEngine {
    static constexpr bool kMovesInPoll = true;
    std::unique_ptr<CopyEngine> make() {
        return std::make_unique<FaultyCopyEngine>(test_seed(),
                                                  FaultyCopyEngine::Faults{.fail_percent = 0, .delay_polls_most = 3});
    }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Slow, CopyEngineContract, MakeSlowEngine);

// It fails copies of its own accord, at any byte: it keeps what is left of the contract.
struct MakeFailingEngine {
    static constexpr bool kMovesInPoll = true;
    std::unique_ptr<CopyEngine> make() {
        return std::make_unique<FaultyCopyEngine>(test_seed(),
                                                  FaultyCopyEngine::Faults{.fail_percent = 60, .delay_polls_most = 3});
    }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Slow, CopyEndingContract, MakeSlowEngine);
INSTANTIATE_TYPED_TEST_SUITE_P(Failing, CopyEndingContract, MakeFailingEngine);

struct Jobs {
    static constexpr int kCount = 200;
    static constexpr std::size_t kBytes = 96;
    SeedTrace trace;
    std::vector<std::byte> source = std::vector<std::byte>(kBytes, std::byte{7});
    std::vector<std::vector<std::byte>> destinations;
    std::vector<CopyTicket> tickets;
    FaultyCopyEngine engine;

    explicit Jobs(FaultyCopyEngine::Faults faults) : engine(test_seed(), faults) {
        destinations.resize(kCount, std::vector<std::byte>(kBytes));
        for (auto& destination : destinations)
            tickets.push_back(engine.submit(std::vector<CopySegment>{{destination.data(), source.data(), kBytes}}));
    }
};

TEST(FaultyCopyEngine, SomeFailWithAPartOfTheirBytesMoved) {
    Jobs jobs({.fail_percent = 50, .delay_polls_most = 0});
    for (int i = 0; i < 100; ++i) jobs.engine.poll(SIZE_MAX);
    int failed = 0;
    int partly = 0;
    for (int i = 0; i < Jobs::kCount; ++i) {
        const auto index = static_cast<std::size_t>(i);
        const bool is_source = jobs.destinations[index] == jobs.source;
        const CopyStatus status = jobs.engine.status(jobs.tickets[index]);
        ASSERT_NE(status, CopyStatus::kPending);
        if (status == CopyStatus::kDone) {
            EXPECT_TRUE(is_source);
        }
        failed += status == CopyStatus::kFailed ? 1 : 0;
        partly += status == CopyStatus::kFailed && !is_source && jobs.engine.moved(jobs.tickets[index]) > 0 ? 1 : 0;
    }
    EXPECT_LT(0, failed);
    EXPECT_LT(failed, Jobs::kCount);
    EXPECT_LT(0, partly);
}

TEST(FaultyCopyEngine, AnUnfinishedDestinationHoldsGarbage) {
    Jobs jobs({.fail_percent = 0, .delay_polls_most = 0});
    for (const auto& destination : jobs.destinations) {
        EXPECT_NE(destination, jobs.source);
        EXPECT_NE(destination, std::vector<std::byte>(Jobs::kBytes));
    }
}

TEST(FaultyCopyEngine, CopiesFinishOutOfOrder) {
    Jobs jobs({.fail_percent = 0, .delay_polls_most = 3});
    jobs.engine.poll(SIZE_MAX);
    jobs.engine.poll(SIZE_MAX);
    bool overtaken = false;
    for (std::size_t i = 1; i < jobs.tickets.size(); ++i)
        overtaken = overtaken || (jobs.engine.status(jobs.tickets[i - 1]) == CopyStatus::kPending &&
                                  jobs.engine.status(jobs.tickets[i]) == CopyStatus::kDone);
    EXPECT_TRUE(overtaken);
}

}  // namespace
}  // namespace ninfer::testing_support
