// The page store at the Qwen3.5-0.8B shape: 6 attention layers, 2 KV heads of 256, bf16, 262,144 tokens; state images of 18
// recurrent layers. Limits: a page is mapped, and released, in 50 ns; an address space of 240,000 tokens is forked in 20 us,
// its page table included; bookkeeping takes at most 1 % of the bytes of keys and values. The last line is PASS or FAIL.
//
//   paged_kv_bench
//
// Times are medians of many. "cold" is the median with other memory touched in between: a fork in real life.

#include <algorithm>
#include <cstdio>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/memory/host_copy_engine.h"
#include "cpp/memory/host_memory.h"
#include "cpp/program/ledger_store.h"
#include "cpp/state/replica_copies.h"
#include "cpp/tensor/recurrent_state_view.h"

namespace ninfer {
namespace {

constexpr std::int64_t kTokens = 262144;
constexpr std::int64_t kForkTokens = 240000;
constexpr std::int64_t kPages = kTokens / kPageTokens;
constexpr KvLayerLayout kLayer = {KvStorage::kBf16, 2, 256};
constexpr std::int64_t kAttentionLayers = 6;
constexpr RecurrentStateLayout kRecurrent = {
    .value_heads = 16, .key_heads = 16, .key_dim = 128, .value_dim = 128, .conv_width = 4};
constexpr std::int64_t kRecurrentLayers = 18;
constexpr std::int64_t kActive = 8;
constexpr int kRepeats = 500;
constexpr double kPageLimitNs = 50.0;
constexpr double kForkLimitUs = 20.0;
constexpr double kBookkeepingLimitPercent = 1.0;

std::size_t image_bytes() {
    const std::int64_t floats = kRecurrent.recurrent_floats() + kRecurrent.conv_floats();
    return static_cast<std::size_t>(kRecurrentLayers * floats) * sizeof(float);
}

// All stores of one program, as large as its tiers; the memory is never touched.
struct Stores {
    std::size_t page_bytes = kAttentionLayers * kLayer.layer_bytes();
    HostMemory device{kPages * page_bytes};
    HostBuffer host_memory{kPages * page_bytes};
    HostTier host{{host_memory.data(), host_memory.size()}, HostTier::block_bytes_for(page_bytes)};
    PagedKvStore pages{device, page_bytes, kPages, host};
    HostMemory image_memory{2 * kActive * image_bytes()};
    StateImageStore images{image_memory, {image_bytes(), kActive, kActive}, host};
    HostCopyEngine engine;
    ReplicaCopies copies{pages, &images, host, engine};

    SpaceId frozen(std::int64_t tokens) {
        const SpaceId space = pages.open((tokens + kPageTokens - 1) / kPageTokens).value();
        NINFER_ASSERT(pages.map(space, tokens).has_value() && pages.commit(space, tokens).has_value(), "no room");
        NINFER_ASSERT(pages.finish(space).has_value(), "not finished");
        return space;
    }
    void release(SpaceId space) { NINFER_ASSERT(pages.release(space).has_value(), "not released"); }
};

class Report {
   public:
    void line(const char* what, double value, double limit, const char* unit) {
        const bool holds = value <= limit;
        passed_ = passed_ && holds;
        std::printf("%-66s %9.2f %s (limit %g) %s\n", what, value, unit, limit, holds ? "ok" : "over");
    }
    int end() const {
        std::printf("%s\n", passed_ ? "PASS" : "FAIL");
        return passed_ ? 0 : 1;
    }

   private:
    bool passed_ = true;
};

double median(std::vector<double> values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// As long a life as one fork at every page: what they parted is joined again, or facts would cost thousands of runs.
void bench_many_forks(const ThreadPool& pool, Report& report) {
    Stores stores;
    const SpaceId source = stores.frozen(kForkTokens);
    std::vector<double> releases;
    for (std::int64_t frontier = kPageTokens; frontier < kForkTokens; frontier += kPageTokens) {
        const SpaceId fork = stores.pages.fork(source, frontier, 1).value();
        releases.push_back(bench::best_seconds(pool, 1, [&] { stores.release(fork); }));
    }
    report.line("runs after a fork at every page", static_cast<double>(stores.pages.facts(source).value().runs), 1, "");
    std::printf("    release of such a fork: median %.2f us\n", median(releases) * 1e6);
}

void bench_pages(const ThreadPool& pool, Report& report) {
    Stores stores;
    std::vector<double> mapping;
    std::vector<double> releasing;
    for (int i = 0; i < kRepeats; ++i) {
        const SpaceId space = stores.pages.open(kPages).value();
        mapping.push_back(bench::best_seconds(pool, 1, [&] {
            for (std::int64_t page = 1; page <= kPages; ++page)
                static_cast<void>(stores.pages.map(space, page * kPageTokens));
        }));
        releasing.push_back(bench::best_seconds(pool, 1, [&] { stores.release(space); }));
    }
    report.line("allocate: map one page more of an active space", median(mapping) * 1e9 / kPages, kPageLimitNs, "ns");
    report.line("release: one page of a space that ends", median(releasing) * 1e9 / kPages, kPageLimitNs, "ns");
}

void touch_other_memory() {
    static std::vector<std::uint64_t> other(std::size_t{8} << 20);  // 64 MiB
    for (std::size_t i = 0; i < other.size(); i += 8) ++other[i];
}

void bench_fork(const ThreadPool& pool, Report& report, const char* what, std::int64_t frontier) {
    Stores stores;
    const SpaceId source = stores.frozen(kForkTokens);
    std::vector<double> warm;
    std::vector<double> cold;
    for (int i = 0; i < kRepeats; ++i) {
        if (i % 10 == 0) touch_other_memory();
        SpaceId fork;
        const double seconds =
            bench::best_seconds(pool, 1, [&] { fork = stores.pages.fork(source, frontier, 64).value(); });
        (i % 10 == 0 ? cold : warm).push_back(seconds * 1e6);
        stores.release(fork);
    }
    report.line(what, median(warm), kForkLimitUs, "us");
    report.line("    the same, cold", median(cold), kForkLimitUs, "us");
}

// The first fork inside a run cuts it: each repetition has a source of its own.
void bench_first_fork(const ThreadPool& pool, Report& report) {
    Stores stores;
    std::vector<double> seconds;
    for (int i = 0; i < kRepeats / 5; ++i) {
        const SpaceId source = stores.frozen(kForkTokens);
        SpaceId fork;
        seconds.push_back(
            bench::best_seconds(pool, 1, [&] { fork = stores.pages.fork(source, kForkTokens / 2 + 1, 64).value(); }));
        stores.release(fork);
        stores.release(source);
    }
    report.line("fork in the middle of one run of 240,000 tokens, which is cut", median(seconds) * 1e6, kForkLimitUs,
                "us");
}

void bench_bookkeeping(Report& report) {
    Stores stores;
    const SpaceId source = stores.frozen(kTokens - kActive * kPageTokens);
    LedgerStore ledgers;
    const LedgerId ids = ledgers.open({}, kTokens);
    static_cast<void>(
        ledgers.append(ids, {std::vector<std::int32_t>(static_cast<std::size_t>(kTokens)), {}, TokenOrigin::kPrompt}));
    for (std::int64_t i = 0; i < kActive; ++i) {
        static_cast<void>(ledgers.fork(ids, (kActive - i) * 4000, (kActive - i) * 4000 + kPageTokens));
        static_cast<void>(stores.pages.fork(source, (kActive - i) * 4000, 1));
        static_cast<void>(stores.images.open());
    }
    const std::size_t bytes = stores.pages.bookkeeping_bytes() + stores.images.bookkeeping_bytes() +
                              stores.host.bookkeeping_bytes() + stores.copies.bookkeeping_bytes() +
                              ledgers.bookkeeping_bytes();
    std::printf("bookkeeping of %ld Device pages, as many on Host, %ld active spaces, their tokens: %.0f KiB\n",
                static_cast<long>(kPages), static_cast<long>(kActive), static_cast<double>(bytes) / 1024);
    const double share = static_cast<double>(bytes) / static_cast<double>(stores.device.size());
    report.line("bookkeeping beside the keys and values on Device", share * 100.0, kBookkeepingLimitPercent, "%");
}

}  // namespace
}  // namespace ninfer

int main() {
    using namespace ninfer;
    const ThreadPool pool(1);
    Report report;
    bench::print_machine();
    bench_pages(pool, report);
    bench_fork(pool, report, "fork of 240,000 tokens at their end, page table included", kForkTokens);
    bench_fork(pool, report, "fork of 239,999 of 240,000 tokens, page table included", kForkTokens - 1);
    bench_first_fork(pool, report);
    bench_many_forks(pool, report);
    bench_bookkeeping(report);
    return report.end();
}
