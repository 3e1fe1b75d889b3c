// Planning over 100 owners whose checkpoints have 240,000 tokens each, half of them branches of ten common beginnings, some
// with pages on both tiers within one run. Limits: the identity is assessed in 10 us, a pressure target in 200 us; a plan
// without copies is sealed, checked and carried out in 50 us. The last line is PASS or FAIL.
//
//   projection_bench
//
// Times are medians of many. Pages are small: nothing here depends on their bytes.

#include <algorithm>
#include <cstdio>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/memory/host_copy_engine.h"
#include "cpp/memory/host_memory.h"
#include "cpp/state/page_count.h"
#include "cpp/transaction/running_transaction.h"

namespace ninfer {
namespace {

constexpr std::int64_t kOwners = 100;
constexpr std::int64_t kTokens = 240000;
constexpr std::int64_t kPagesEach = pages_of(kTokens);
constexpr std::int64_t kPages = kOwners * kPagesEach + 10000;
constexpr std::size_t kPageBytes = 64;
constexpr std::size_t kImageBytes = 64;
constexpr int kRepeats = 300;
constexpr double kIdentityLimitUs = 10.0;
constexpr double kPressureLimitUs = 200.0;
constexpr double kStartLimitUs = 50.0;
constexpr double kReadLimitUs = 200.0;  // our own: a session reads its domain once

struct World {
    HostMemory device{kPages * kPageBytes};
    HostMemory image_memory{(kOwners + 30) * kImageBytes};
    HostBuffer host_memory{kPages * kPageBytes};
    HostTier host{{host_memory.data(), host_memory.size()}, HostTier::block_bytes_for(kPageBytes)};
    PagedKvStore pages{device, kPageBytes, kPages, host};
    StateImageStore images{image_memory, {kImageBytes, 8, kOwners + 20}, host};
    HostCopyEngine engine;
    ReplicaCopies copies{pages, &images, host, engine};
    std::vector<Holding> holdings;

    World() {
        std::vector<Holding> beginnings;
        for (int i = 0; i < 10; ++i) beginnings.push_back(grown(pages.open(kPagesEach / 2).value(), kTokens / 2));
        for (std::int64_t i = 0; i < kOwners; ++i) {
            if (i % 2 == 0)
                holdings.push_back(grown(pages.open(kPagesEach).value(), kTokens));
            else
                holdings.push_back(branch(beginnings[static_cast<std::size_t>(i / 2 % 10)]));
        }
    }
    StateStores stores() { return {&pages, &images, &copies}; }
    Holding grown(SpaceId space, std::int64_t tokens) {
        NINFER_ASSERT(pages.map(space, tokens).has_value() && pages.commit(space, tokens).has_value(), "no room");
        NINFER_ASSERT(pages.finish(space).has_value(), "not finished");
        const ImageId image = images.open().value();
        NINFER_ASSERT(images.finish(image).has_value(), "no slot");
        return {space, image};
    }
    Holding branch(const Holding& beginning) {
        return grown(pages.fork(beginning.kv, kTokens / 2, kPagesEach - kPagesEach / 2).value(), kTokens);
    }
    // Every sixteenth page of the last quarter of a holding is on both tiers, every other sixteenth on Host alone.
    void scatter(const Holding& holding) {
        std::vector<PageId> ids;
        pages.for_each_page(holding.kv, [&](PageId page, const LogicalPage&) { ids.push_back(page); });
        for (std::size_t i = ids.size() * 3 / 4; i < ids.size(); i += 8) {
            const CopyId copy = copies.start_page(ids[i], Tier::kHost).value();
            copies.poll(SIZE_MAX);
            NINFER_ASSERT(copies.publish(copy).has_value(), "not copied");
            if (i % 16 == 0) NINFER_ASSERT(pages.drop(ids[i], Tier::kDevice).has_value(), "not dropped");
        }
    }
};

// Three more checkpoints of each owner, at a quarter, a half and three quarters: four times the runs.
void add_checkpoints(World& world) {
    const std::vector<Holding> endpoints = world.holdings;
    for (const Holding& endpoint : endpoints) {
        for (std::int64_t quarter = 1; quarter < 4; ++quarter) {
            world.holdings.push_back({world.pages.share(endpoint.kv, kTokens / 4 * quarter).value(), endpoint.image});
            NINFER_ASSERT(world.images.retain(endpoint.image).has_value(), "not retained");
        }
    }
}

class Report {
   public:
    void line(const char* what, double microseconds, double limit) {
        const bool holds = microseconds <= limit;
        passed_ = passed_ && holds;
        std::printf("%-76s %8.2f us (limit %g) %s\n", what, microseconds, limit, holds ? "ok" : "over");
    }
    int end() const {
        std::printf("%s\n", passed_ ? "PASS" : "FAIL");
        return passed_ ? 0 : 1;
    }

   private:
    bool passed_ = true;
};

template <typename Work>
double median_us(const ThreadPool& pool, Work&& work) {
    const auto nothing = [] { return 0; };
    return bench::median_seconds(pool, kRepeats, nothing, [&](int) { work(); }) * 1e6;
}

// A third goes, a third is demoted from half of its pages on, a third loses redundant replicas.
std::vector<HoldingOutcome> pressure_target(const TargetDomain& domain) {
    auto outcomes = domain.identity();
    for (std::size_t i = 1; i < outcomes.size(); ++i) {
        outcomes[i].survives = i % 3 != 0;
        outcomes[i].drops_host = i % 3 == 1;
        if (i % 3 != 2) continue;
        outcomes[i].device_pages /= 2;
        outcomes[i].image = ImageOutcome::kHostOnly;
    }
    return outcomes;
}

ResourceNeed move_of(std::int32_t source) {
    return {.kind = ResourceNeed::Kind::kSource,
            .consumes = true,
            .source = source,
            .frontier = kTokens,
            .pages = kPagesEach + 64,
            .room = {}};
}

void bench_projection(const ThreadPool& pool, World& world, Report& report) {
    TargetDomain domain(world.stores());
    const auto read = [&] { NINFER_ASSERT(domain.read(world.holdings, 1).has_value(), "not read"); };
    report.line("read 100 owners of 240,000 tokens, runs in one place", median_us(pool, read), kReadLimitUs);
    ResourceProjector projector(domain);
    const auto identity = domain.identity();
    const ResourceNeed need = move_of(0);
    ResourceProjection projection;
    report.line("assess the identity", median_us(pool, [&] { projection = projector.project(identity, need); }),
                kIdentityLimitUs);
    NINFER_ASSERT(projection.kv == KvActivation::kMove, "the source has a tail of its own");
    const auto pressed = pressure_target(domain);
    report.line("assess a pressure target", median_us(pool, [&] { projection = projector.project(pressed, need); }),
                kPressureLimitUs);
    std::printf("    %zu runs, %lld pages and images to Host, %lld removed\n", domain.runs().size(),
                static_cast<long long>(projection.to_host.operations), static_cast<long long>(projection.removed));
    for (std::size_t i = 1; i < world.holdings.size(); i += 10) world.scatter(world.holdings[i]);
    report.line("read them with pages of ten runs scattered over both tiers", median_us(pool, read), kReadLimitUs);
    report.line("assess the identity", median_us(pool, [&] { projection = projector.project(identity, need); }),
                kIdentityLimitUs);
    report.line("assess a pressure target", median_us(pool, [&] { projection = projector.project(pressed, need); }),
                kPressureLimitUs);
}

void bench_checkpoints(const ThreadPool& pool, World& world, Report& report) {
    TargetDomain domain(world.stores());
    NINFER_ASSERT(domain.read(world.holdings, 1).has_value(), "not read");
    ResourceProjector projector(domain);
    const auto identity = domain.identity();
    const auto pressed = pressure_target(domain);
    const ResourceNeed need = {.kind = ResourceNeed::Kind::kRoot, .pages = 1000, .room = {}};
    report.line("400 checkpoints of them: assess the identity",
                median_us(pool, [&] { static_cast<void>(projector.project(identity, need)); }), kIdentityLimitUs);
    report.line("assess a pressure target",
                median_us(pool, [&] { static_cast<void>(projector.project(pressed, need)); }), kPressureLimitUs);
    std::printf("    %zu runs, %zu holdings\n", domain.runs().size(), domain.holdings().size());
}

// A Move of the whole source, then back: finish makes it a holding again.
void bench_start(const ThreadPool& pool, World& world, Report& report) {
    TargetDomain domain(world.stores());
    ResourceProjector projector(domain);
    std::unique_ptr<RunningTransaction> running;
    const auto prepare = [&] {
        if (running) {
            const TransactionResult result = running->result();
            NINFER_ASSERT(result.end == TransactionEnd::kCommitted, "not committed");
            NINFER_ASSERT(world.pages.finish(result.kv).has_value(), "not finished");
            NINFER_ASSERT(world.images.finish(result.image).has_value(), "not finished");
            world.holdings[0] = {result.kv, result.image};
        }
        NINFER_ASSERT(domain.read(world.holdings, 1).has_value(), "not read");
        return domain.identity();
    };
    const auto carry_out = [&](const std::vector<HoldingOutcome>& identity) {
        auto plan = ResourcePlan::seal(projector, identity, move_of(0)).value();
        running = RunningTransaction::start(std::move(plan), world.stores(), 1).value();
        running->advance();
    };
    const double seconds = bench::median_seconds(pool, kRepeats, prepare, carry_out);
    prepare();  // the last one becomes a holding again
    report.line("seal, start and carry out a Move of 240,000 tokens among 100 owners", seconds * 1e6, kStartLimitUs);
}

int run() {
    bench::print_machine();
    const ThreadPool pool(1);
    Report report;
    World world;
    bench_projection(pool, world, report);
    bench_start(pool, world, report);
    add_checkpoints(world);
    bench_checkpoints(pool, world, report);
    return report.end();
}

}  // namespace
}  // namespace ninfer

int main() { return ninfer::run(); }
