// Exact verification of a prompt of 240,000 tokens against 32 candidates that share their history, beside one memcmp over
// as many ids in the same run; and the digests of all its frontiers.
//
// The candidates are one conversation and 31 branches that left it at even distances and went on for 2,000 tokens, so
// that the history lies in 32 shared runs; then the same after forks at every page came and went. Both sides run in turn
// (A B A B); the medians are compared.

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/program/ledger_verifier.h"

namespace ninfer {
namespace {

constexpr std::int64_t kTokens = 240'000;
constexpr std::int64_t kCandidates = 32;
constexpr std::int64_t kBranchTokens = 2'000;
constexpr int kRepeats = 301;
constexpr double kMostRatio = 1.5;

std::vector<std::int32_t> random_ids(std::mt19937& engine, std::int64_t count) {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(count));
    for (auto& id : ids) id = static_cast<std::int32_t>(engine() % 248'320);
    return ids;
}

template <typename Work>
double seconds_of(const ThreadPool& pool, Work&& work) {
    const double begin = bench::seconds_now(pool);
    work();
    return bench::seconds_now(pool) - begin;
}

double median(std::vector<double> values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

struct History {
    IdentityHeader header{"salt of a tenant", "chat template of a model", 0};
    std::vector<std::int32_t> ids;
    LedgerStore store;
    std::vector<LedgerCandidate> candidates;

    History() {
        std::mt19937 engine(1);
        ids = random_ids(engine, kTokens);
        const LedgerId whole = store.open(header, kTokens);
        store.append(whole, {ids, {}, TokenOrigin::kPrompt}).value();
        candidates.push_back({whole, kTokens});
        for (std::int64_t i = 1; i < kCandidates; ++i) {
            const std::int64_t frontier = kTokens * i / kCandidates;
            const LedgerId branch = store.fork(whole, frontier, frontier + kBranchTokens).value();
            store.append(branch, {random_ids(engine, kBranchTokens), {}, TokenOrigin::kPrompt}).value();
            candidates.push_back({branch, frontier});
        }
    }
    PromptView prompt() const { return {&header, ids, {}}; }
};

bool verify_is_fast(const ThreadPool& pool, const History& history, const char* what) {
    LedgerVerifier verifier(history.store);
    std::vector<Verification> answers(static_cast<std::size_t>(kCandidates));
    const std::vector<std::int32_t> copy = history.ids;
    std::vector<double> compares;
    std::vector<double> verifies;
    int differs = 0;
    for (int i = 0; i < kRepeats; ++i) {
        compares.push_back(seconds_of(pool, [&] {
            differs |= std::memcmp(history.ids.data(), copy.data(), copy.size() * sizeof(std::int32_t));
        }));
        verifies.push_back(
            seconds_of(pool, [&] { verifier.verify(history.prompt(), history.candidates, answers).value(); }));
    }
    NINFER_ASSERT_EQ(differs, 0);
    for (const Verification& answer : answers) NINFER_ASSERT(answer.exact, "a candidate of the history is no hit");
    const double ratio = median(verifies) / median(compares);
    std::printf("verify, %ld candidates%s: %.1f us; memcmp of the ids: %.1f us; ratio %.2f (at most %.1f): %s\n",
                static_cast<long>(kCandidates), what, median(verifies) * 1e6, median(compares) * 1e6, ratio, kMostRatio,
                ratio <= kMostRatio ? "PASS" : "FAIL");
    return ratio <= kMostRatio;
}

// A fork at every page that is gone again, as a long life leaves them.
void part_and_release(History& history) {
    const LedgerId whole = history.candidates.front().ledger;
    for (std::int64_t frontier = kDigestBlockTokens; frontier < kTokens; frontier += kDigestBlockTokens) {
        const LedgerId fork = history.store.fork(whole, frontier, frontier + 1).value();
        history.store.release(fork).value();
    }
    std::printf("after a fork at every page: %ld runs\n", static_cast<long>(history.store.run_count()));
}

// What admission asks when many owners hold something: 1,000 ledgers, one in four a branch of the history.
void measure_many_owners(const ThreadPool& pool, History& history) {
    constexpr std::int64_t kOwners = 1'000;
    std::mt19937 engine(2);
    std::vector<LedgerCandidate> candidates;
    const LedgerId whole = history.candidates.front().ledger;
    for (std::int64_t i = 0; i < kOwners; ++i) {
        const std::int64_t frontier = i % 4 == 0 ? kTokens * i / kOwners : 0;
        const std::int64_t room = frontier + kBranchTokens / 4;
        const LedgerId owner =
            frontier > 0 ? history.store.fork(whole, frontier, room).value() : history.store.open(history.header, room);
        history.store.append(owner, {random_ids(engine, room - frontier), {}, TokenOrigin::kPrompt}).value();
        candidates.push_back({owner, frontier});
    }
    LedgerVerifier verifier(history.store);
    std::vector<Verification> answers(candidates.size());
    std::vector<double> seconds;
    for (int i = 0; i < kRepeats; ++i)
        seconds.push_back(seconds_of(pool, [&] { verifier.verify(history.prompt(), candidates, answers).value(); }));
    std::printf("%-44s %9.1f us\n", "verify, 1,000 owners", median(seconds) * 1e6);
}

void print_per_token(const char* name, double seconds) {
    std::printf("%-44s %9.1f us  %6.2f ns/token\n", name, seconds * 1e6, seconds * 1e9 / kTokens);
}

void measure_digests(const ThreadPool& pool, const History& history) {
    std::vector<std::int64_t> frontiers;
    for (const LedgerCandidate& candidate : history.candidates) frontiers.push_back(candidate.frontier);
    std::sort(frontiers.begin(), frontiers.end());
    std::vector<Digest128> chosen(frontiers.size());
    std::vector<Digest128> all(static_cast<std::size_t>(kTokens) + 1);
    std::vector<double> chosen_seconds;
    std::vector<double> all_seconds;
    for (int i = 0; i < kRepeats / 10; ++i) {
        chosen_seconds.push_back(seconds_of(pool, [&] { prefix_digests(history.prompt(), frontiers, chosen); }));
        all_seconds.push_back(seconds_of(pool, [&] { all_prefix_digests(history.prompt(), all); }));
    }
    NINFER_ASSERT(chosen.back() == all.back(), "two ways to one digest differ");
    print_per_token("digests at 32 frontiers", median(chosen_seconds));
    print_per_token("digests at all frontiers", median(all_seconds));
}

void measure_ledger(const ThreadPool& pool, const History& history) {
    std::vector<double> appends;
    std::vector<double> singles;
    std::vector<double> forks;
    std::size_t bytes = 0;
    for (int i = 0; i < kRepeats / 10; ++i) {
        LedgerStore store;
        const LedgerId whole = store.open(history.header, kTokens);
        appends.push_back(
            seconds_of(pool, [&] { store.append(whole, {history.ids, {}, TokenOrigin::kPrompt}).value(); }));
        bytes = store.bookkeeping_bytes();
        forks.push_back(seconds_of(pool, [&] { store.fork(whole, kTokens / 2, kTokens / 2).value(); }));
        const LedgerId single = store.open(history.header, kTokens);
        singles.push_back(seconds_of(pool, [&] {
            for (std::size_t token = 0; token < static_cast<std::size_t>(kTokens); ++token)
                store.append(single, {std::span(history.ids).subspan(token, 1), {}, TokenOrigin::kOutput}).value();
        }));
    }
    print_per_token("append of the prompt, digests included", median(appends));
    print_per_token("append of single tokens, digests included", median(singles));
    std::printf("%-44s %9.1f us\n", "fork in the middle of one run", median(forks) * 1e6);
    std::printf("%-44s %9.2f bytes/token\n", "memory of a ledger, ids included", static_cast<double>(bytes) / kTokens);
}

}  // namespace
}  // namespace ninfer

int main() {
    using namespace ninfer;
    const ThreadPool pool(1);
    History history;
    bench::print_machine();
    std::printf("%ld tokens, one thread, median of %d (verify) and %d (the rest)\n", static_cast<long>(kTokens),
                kRepeats, kRepeats / 10);
    const bool fast = verify_is_fast(pool, history, "");
    part_and_release(history);
    const bool stays_fast = verify_is_fast(pool, history, " after many forks");
    measure_digests(pool, history);
    measure_ledger(pool, history);
    measure_many_owners(pool, history);
    return fast && stays_fast ? 0 : 1;
}
