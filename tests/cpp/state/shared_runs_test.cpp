#include "cpp/state/shared_runs.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/support/counting_new.h"
#include "tests/support/test_seed.h"

namespace ninfer {
namespace {

struct Sum {
    int total = 0;  // of the elements
};
using Runs = SharedRuns<int, Sum>;

// Chains beside plain vectors that share nothing.
class Chains {
   public:
    RunId append(RunId parent, const std::vector<int>& elements) {
        const RunId run = runs.append_run(parent);
        runs.run(run).elements = elements;
        recount(runs.run(run));
        runs.attach(run);
        ends.push_back(run);
        return run;
    }
    RunId cut(RunId last, std::int64_t length) {
        return runs.cut(last, length, [&](Runs::Run& first, Runs::Run& second) {
            recount(first);
            recount(second);
        });
    }
    void release(std::size_t chain) {
        runs.detach(ends[chain], [&](const Runs::Run& run) { freed += run.size(); });
        ends.erase(ends.begin() + static_cast<std::ptrdiff_t>(chain));
    }
    void compact(RunId last) {
        runs.compact(last, [](Runs::Run& first, Runs::Run& second) {
            second.data.total += first.data.total;
            return true;
        });
    }
    std::vector<int> elements(RunId last) const {
        std::vector<int> all;
        runs.for_each_of(last, [&](RunId, const Runs::Run& run) {
            all.insert(all.begin(), run.elements.begin(), run.elements.end());
        });
        return all;
    }
    void check() const {
        runs.check_invariants(ends);
        runs.for_each([](RunId, const Runs::Run& run) {
            int total = 0;
            for (const int element : run.elements) total += element;
            ASSERT_EQ(run.data.total, total);
        });
    }

    Runs runs;
    std::vector<RunId> ends;
    std::int64_t freed = 0;

   private:
    static void recount(Runs::Run& run) {
        run.data.total = 0;
        for (const int element : run.elements) run.data.total += element;
    }
};

TEST(SharedRunsTest, CutsAtEveryLength) {
    for (std::int64_t length = 0; length <= 5; ++length) {
        Chains chains;
        const RunId first = chains.append({}, {1, 2, 3});
        const RunId second = chains.append(first, {4, 5});
        const RunId end = chains.cut(second, length);
        chains.runs.attach(end);
        if (!end.none()) chains.ends.push_back(end);
        EXPECT_EQ(chains.runs.length(end), length);
        const std::vector<int> all = {1, 2, 3, 4, 5};
        EXPECT_EQ(chains.elements(end), std::vector<int>(all.begin(), all.begin() + length));
        EXPECT_EQ(chains.elements(second), all);
        EXPECT_EQ(chains.elements(first), (std::vector<int>{1, 2, 3}));
        chains.check();
    }
}

TEST(SharedRunsTest, TheLastHolderFreesARun) {
    Chains chains;
    const RunId first = chains.append({}, {1, 2, 3});
    chains.append(first, {4, 5});
    EXPECT_EQ(chains.runs.run(first).holders, 2);
    chains.release(0);
    EXPECT_EQ(chains.freed, 0);
    EXPECT_EQ(chains.runs.run(first).holders, 1);
    chains.release(0);
    EXPECT_EQ(chains.freed, 5);
    EXPECT_EQ(chains.runs.run_count(), 0);
    chains.check();
}

TEST(SharedRunsTest, RandomForestsKeepTheirElements) {
    const testing_support::SeedTrace trace;
    std::mt19937_64 random(testing_support::test_seed());
    Chains chains;
    std::vector<std::vector<int>> naive;
    for (int step = 0; step < 3000; ++step) {
        const bool fork = !naive.empty() && random() % 3 > 0;
        if (naive.size() > 8 || (!naive.empty() && random() % 4 == 0)) {
            const std::size_t chain = random() % naive.size();
            chains.release(chain);
            naive.erase(naive.begin() + static_cast<std::ptrdiff_t>(chain));
        } else {
            std::vector<int> elements;
            RunId parent;
            if (fork) {
                const std::size_t source = random() % naive.size();
                const auto length = static_cast<std::int64_t>(random() % (naive[source].size() + 1));
                parent = chains.cut(chains.ends[source], length);
                elements.assign(naive[source].begin(), naive[source].begin() + length);
            }
            std::vector<int> more(1 + random() % 5);
            for (int& element : more) element = static_cast<int>(random() % 1000);
            chains.append(parent, more);
            elements.insert(elements.end(), more.begin(), more.end());
            naive.push_back(elements);
        }
        if (!naive.empty() && random() % 4 == 0) chains.compact(chains.ends[random() % naive.size()]);
        chains.check();
        for (std::size_t i = 0; i < naive.size(); ++i) ASSERT_EQ(chains.elements(chains.ends[i]), naive[i]);
    }
}

TEST(SharedRunsTest, CompactingJoinsWhatNobodyParts) {
    Chains chains;
    const RunId first = chains.append({}, {1, 2});
    const RunId second = chains.append(first, {3});
    chains.compact(second);
    EXPECT_EQ(chains.runs.run_count(), 2);  // the first chain ends between them
    chains.release(0);
    chains.compact(second);
    EXPECT_EQ(chains.runs.run_count(), 1);
    EXPECT_EQ(chains.elements(second), (std::vector<int>{1, 2, 3}));
    chains.check();
}

TEST(SharedRunsTest, ARunThatFindsNoMemoryChangesNothingAndReleasingAllocatesNothing) {
    std::int64_t failures = 0;
    for (int count = 0; count < 9; ++count) {
        for (std::int64_t successes = 0; successes < 2; ++successes) {
            Chains chains;
            for (int i = 0; i < count; ++i) chains.append({}, {i});
            testing_support::allocations_left = successes;
            try {
                static_cast<void>(chains.runs.append_run({}));
                testing_support::allocations_left = testing_support::kUnlimited;
                continue;
            } catch (const std::bad_alloc&) {
                testing_support::allocations_left = testing_support::kUnlimited;
            }
            ++failures;
            chains.check();
            chains.append({}, {7});
            chains.check();
            chains.ends.reserve(chains.ends.size() + 1);
            const std::int64_t before = testing_support::allocations();
            while (!chains.ends.empty()) chains.release(0);
            EXPECT_EQ(testing_support::allocations(), before);
        }
    }
    EXPECT_LE(2, failures);
}

TEST(SharedRunsTest, TheLastRunThatAllChainsGoThrough) {
    Chains chains;
    const RunId first = chains.append({}, {1, 2});
    const RunId second = chains.append(first, {3});
    const RunId third = chains.append(second, {4});
    const RunId other = chains.append(third, {5});
    EXPECT_EQ(chains.runs.end_of_common(first), first);  // a chain ends there
    for (int i = 0; i < 3; ++i) chains.release(0);
    EXPECT_EQ(chains.runs.end_of_common(first), other);
    chains.append(second, {6});
    EXPECT_EQ(chains.runs.end_of_common(first), second);
    EXPECT_EQ(chains.runs.end_of_common(third), other);
    chains.check();
}

TEST(SharedRunsTest, AJoinThatFindsNoMemoryIsLeftOut) {
    Chains chains;
    const RunId second = chains.append(chains.append({}, {1, 2}), {3});
    chains.release(0);
    const auto join = [](Runs::Run& first, Runs::Run& last) {
        first.elements.reserve(100);
        last.data.total += first.data.total;
        return true;
    };
    testing_support::allocations_left = 0;
    chains.runs.compact(second, join);
    testing_support::allocations_left = testing_support::kUnlimited;
    EXPECT_EQ(chains.runs.run_count(), 2);
    chains.check();
    chains.runs.compact(second, join);
    EXPECT_EQ(chains.runs.run_count(), 1);
    chains.check();
}

TEST(SharedRunsDeathTest, BrokenUseStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    Chains chains;
    const RunId run = chains.append({}, {1, 2});
    EXPECT_DEATH(chains.cut(run, 3), "left = 3, right = 2");
    EXPECT_DEATH(chains.cut(run, -1), "left = 0, right = -1");
    EXPECT_DEATH(chains.runs.run(RunId{7}), "left = 7, right = 1");
    EXPECT_DEATH(chains.runs.check_invariants({run, run}), "left = 1, right = 2");
    chains.runs.run(run).begin = 5;
    EXPECT_DEATH(chains.check(), "left = 5, right = 0");
    chains.runs.run(run).begin = 0;
    chains.release(0);
    EXPECT_DEATH(chains.runs.detach(run, [](const Runs::Run&) {}), "left = 1, right = 0");
}

}  // namespace
}  // namespace ninfer
