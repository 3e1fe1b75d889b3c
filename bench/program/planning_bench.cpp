// Planning on a program's state with 100 idle conversations of 240,000 tokens each, four checkpoints per conversation,
// half of them branches of ten common beginnings. Limits: an identity target is assessed in 10 us, a pressure target in
// 200 us, and a plan without copies is sealed, started and over in 50 us. One that evicts owners gives every run, image and
// page of theirs back, and so is linear in them: 50 us and 50 ns per page. The last line is PASS or FAIL.
//
//   planning_bench
//
// Times are medians of many. Pages are small: nothing here depends on their bytes.

#include <cstdio>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/memory/host_copy_engine.h"
#include "cpp/program/backfill_proof.h"
#include "cpp/program/candidate_verification.h"
#include "cpp/program/capture.h"
#include "cpp/program/context_transaction.h"
#include "cpp/program/copy_polling.h"
#include "cpp/program/planning_session.h"
#include "cpp/program/sequence_opening.h"
#include "cpp/state/page_count.h"

namespace ninfer {
namespace {

constexpr std::int64_t kConversations = 100;
constexpr std::int64_t kTokens = 240'000;
constexpr std::int64_t kQuarter = kTokens / 4;
constexpr std::int64_t kGrowth = 4096;
// All idle ones, and what one more needs that goes on from one of them.
constexpr std::int64_t kPages =
    500 + (kConversations * 3 / 4 + 5) * pages_of(kTokens) + pages_of(kTokens + 2 * kGrowth);
constexpr std::size_t kPageBytes = 64;
constexpr std::size_t kImageBytes = 64;
constexpr int kRepeats = 300;
constexpr double kIdentityLimitUs = 10.0;
constexpr double kPressureLimitUs = 200.0;
constexpr double kStartLimitUs = 50.0;
constexpr double kEvictedPageLimitNs = 50.0;  // as paged_kv_bench has it for a release

template <typename T>
T must(Result<T, Refusal> result) {
    if (!result) std::printf("refused: %s\n", result.error().message().c_str());
    NINFER_ASSERT(result.has_value(), "refused");
    return std::move(result).value();
}

class Conversations {
   public:
    Conversations() : state(sizes(), std::make_unique<HostCopyEngine>()) {
        for (int i = 0; i < 10; ++i) beginnings_.push_back(make({}, kTokens / 2));
        for (std::int64_t i = 0; i < kConversations; ++i)
            endpoints.push_back(
                make(i % 2 == 0 ? CheckpointHandle{} : beginnings_[static_cast<std::size_t>(i / 2 % 10)], kTokens));
    }
    std::vector<std::int32_t> prompt_after(CheckpointHandle checkpoint, std::int64_t more) {
        const Checkpoint& found = *must(state.owners.find(checkpoint));
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(found.frontier));
        must(state.stores.ledgers().read(found.ledger, 0, tokens));
        const auto suffix = random_tokens(more);
        tokens.insert(tokens.end(), suffix.begin(), suffix.end());
        return tokens;
    }

    ContextState state;
    std::vector<CheckpointHandle> endpoints;

   private:
    static ContextSizes sizes() {
        ContextSizes made;
        made.kv_pages = kPages;
        made.page_bytes = kPageBytes;
        made.image_bytes = kImageBytes;
        made.lanes = 8;
        made.checkpoint_slots = 5 * kConversations;
        made.host_bytes = kPages * static_cast<std::int64_t>(kPageBytes);
        made.max_context = 2 * kTokens;
        made.vocab_size = 16;
        return made;
    }
    std::vector<std::int32_t> random_tokens(std::int64_t count) {
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
        for (auto& token : tokens) token = static_cast<std::int32_t>(random_() % 200'000);
        return tokens;
    }
    CheckpointHandle make(CheckpointHandle base, std::int64_t tokens) {
        const SequenceHandle sequence = base == CheckpointHandle{}
                                            ? must(open_root(state, {.tokens = tokens, .captures = 3}))
                                            : must(open_from(state, {base}, {.tokens = tokens, .captures = 3}));
        while (state.sequences.at(sequence).computed < tokens) {
            compute(sequence, kQuarter);
            if (state.sequences.at(sequence).computed < tokens) must(capture(state, sequence, {}));
            poll_copies(state, SIZE_MAX);
        }
        const OwnerHandle owner = must(finish(state, sequence, {}));
        return must(state.owners.find(owner))->checkpoints.back();
    }
    void compute(SequenceHandle handle, std::int64_t count) {
        poll_copies(state, SIZE_MAX);
        Sequence& sequence = state.sequences.at(handle);
        must(state.stores.ledgers().append(sequence.ledger, {random_tokens(count), {}, TokenOrigin::kPrompt}));
        sequence.length += count;
        must(state.stores.kv().map(sequence.kv, sequence.length));
        must(state.stores.kv().commit(sequence.kv, sequence.length));
        must(state.stores.images().commit(sequence.image));
        sequence.computed = sequence.length;
    }

    std::mt19937 random_{1};
    std::vector<CheckpointHandle> beginnings_;
};

class Report {
   public:
    explicit Report(const ThreadPool& pool) : pool_(pool) {}

    template <typename Work>
    void median(const char* what, double limit, Work&& work) {
        const auto nothing = [] { return 0; };
        const auto once = [&](int) { work(); };
        line(what, bench::median_seconds(pool_, kRepeats, nothing, once) * 1e6, limit);
    }
    // With something untimed before each run.
    template <typename Prepare, typename Work>
    void median_of(const char* what, double limit, Prepare&& prepare, Work&& work) {
        line(what, bench::median_seconds(pool_, kRepeats / 3, prepare, work) * 1e6, limit);
    }
    const ThreadPool& pool() const { return pool_; }
    void line(const char* what, double microseconds, double limit) {
        const bool holds = limit == 0.0 || microseconds <= limit;
        passed_ = passed_ && holds;
        std::printf("%-72s %9.2f us", what, microseconds);
        if (limit > 0.0) std::printf(" (limit %g) %s", limit, holds ? "ok" : "over");
        std::printf("\n");
    }
    int end() const {
        std::printf("%s\n", passed_ ? "PASS" : "FAIL");
        return passed_ ? 0 : 1;
    }

   private:
    const ThreadPool& pool_;
    bool passed_ = true;
};

void bench_no_pressure(Conversations& world, Report& report) {
    PlanningSession session(world.state);
    const auto prompt = world.prompt_after(world.endpoints[0], 100);
    const IdentityHeader header;
    const CandidateSource source{world.endpoints[0], SourceUse::kConsume};
    std::vector<AdmissionCandidate> found;
    report.median("verify a candidate of 240,000 tokens", 0.0,
                  [&] { found = must(verify_candidates(world.state, {&header, prompt, {}}, {&source, 1})); });
    const std::vector<Publication> options{AdmissionPublication{found[0], {.tokens = std::ssize(prompt) + kGrowth}},
                                           AdmissionPublication{found[1], {.tokens = std::ssize(prompt) + kGrowth}}};
    const auto open = [&] {
        must(session.open(options, {}));
        return must(session.identity(1));
    };
    report.median("open a session with root and one candidate", 0.0, open);
    report.median_of("assess an identity target", kIdentityLimitUs, open,
                     [&](TargetId target) { must(session.assess(target)); });
}

void bench_start(Conversations& world, Report& report) {
    PlanningSession session(world.state);
    const auto prompt = world.prompt_after(world.endpoints[0], 100);
    const IdentityHeader header;
    const CandidateSource source{world.endpoints[0]};
    const auto found = must(verify_candidates(world.state, {&header, prompt, {}}, {&source, 1}));
    const Publication option = AdmissionPublication{found[1], {.tokens = std::ssize(prompt) + kGrowth}};
    SequenceHandle opened;
    const auto prepare = [&] {
        if (opened != SequenceHandle{}) must(close_sequence(world.state, opened));
        must(session.open({&option, 1}, {}));
        const TargetId target = must(session.identity(0));
        must(session.assess(target));
        return target;
    };
    const auto carry_out = [&](TargetId target) {
        const auto ended = must(start_transaction(world.state, must(session.seal(target)), {}));
        NINFER_ASSERT(ended.has_value(), "it copies something");
        opened = ended->sequence;
    };
    report.median_of("seal, start and commit a fork without copies", kStartLimitUs, prepare, carry_out);
    must(close_sequence(world.state, opened));
}

// Every second conversation goes, the others keep the first eighth of their pages on Device.
std::vector<Degradation> pressure(const Conversations& world) {
    std::vector<Degradation> steps;
    for (std::size_t i = 1; i < world.endpoints.size(); ++i) {
        const Checkpoint& endpoint = *must(world.state.owners.find(world.endpoints[i]));
        if (i % 2 == 0) {
            steps.push_back({.kind = DegradationKind::kEvict, .owner = endpoint.owner});
            continue;
        }
        for (const CheckpointHandle checkpoint : must(world.state.owners.find(endpoint.owner))->checkpoints)
            steps.push_back({.kind = DegradationKind::kPagesToHost,
                             .checkpoint = checkpoint,
                             .device_pages = pages_of(kTokens) / 8});
    }
    return steps;
}

void bench_pressure(Conversations& world, Report& report) {
    PlanningSession session(world.state);
    AdmissionCandidate root;
    root.prompt_tokens = 2 * kTokens;
    const Publication option = AdmissionPublication{root, {.tokens = 2 * kTokens}};
    const auto open = [&] {
        must(session.open({&option, 1}, {}));
        return must(session.identity(0));
    };
    report.median_of("read all owners, and list what could help", 0.0, open,
                     [&](TargetId target) { must(session.degradations(target)); });
    const auto steps = pressure(world);
    const auto prepare = [&] {
        const TargetId identity = open();
        must(session.degradations(identity));
        return must(session.degrade(identity, steps));
    };
    report.median_of("assess a pressure target over 100 owners", kPressureLimitUs, prepare,
                     [&](TargetId target) { must(session.assess(target)); });
    TargetFacts facts;
    report.median_of("the same with every recovery", 0.0, prepare,
                     [&](TargetId target) { must(session.assess_many({&target, 1}, facts)); });
    std::printf("    %zu steps, %zu recoveries, %lld pages to Host\n", steps.size(), facts.recipes.size(),
                static_cast<long long>(facts.assessments[0].to_host.operations));
    report.median("prove a backfill", 0.0, [&] {
        must(prove_backfill(
            world.state,
            {.head = {.tokens = kTokens}, .borrower = {.tokens = 1000}, .donors = {}, .protected_owners = {}}));
    });
    std::vector<Degradation> evictions;
    for (const Degradation& step : steps)
        if (step.kind == DegradationKind::kEvict) evictions.push_back(step);
    const auto evicting = [&] {
        const TargetId target = must(session.degrade(open(), evictions));
        must(session.assess(target));
        return target;
    };
    report.median_of("seal a target that evicts 49 owners", 0.0, evicting,
                     [&](TargetId target) { must(session.seal(target)); });
}

// Everybody is there again for each run: what is evicted is gone.
class Evictions {
   public:
    explicit Evictions(std::int64_t owners) : owners_(owners) {}

    // All but the first ones stay. Ready to be sealed.
    TargetId prepare() {
        world_.emplace();
        session_.emplace(world_->state);
        AdmissionCandidate root;
        root.prompt_tokens = kGrowth;
        const Publication option = AdmissionPublication{root, {.tokens = kGrowth}};
        must(session_->open({&option, 1}, {}));
        std::vector<Degradation> steps;
        for (std::int64_t i = 0; i < owners_; ++i) {
            const Checkpoint& endpoint =
                *must(world_->state.owners.find(world_->endpoints[static_cast<std::size_t>(i)]));
            steps.push_back({.kind = DegradationKind::kEvict, .owner = endpoint.owner});
        }
        const TargetId target = must(session_->degrade(must(session_->identity(0)), steps));
        const TargetAssessment assessed = must(session_->assess(target));
        pages_ = assessed.used.front().device_pages - assessed.used[1].device_pages;
        return target;
    }
    void carry_out(TargetId target) {
        const auto ended = must(start_transaction(world_->state, must(session_->seal(target)), {}));
        NINFER_ASSERT(ended.has_value(), "it copies something");
        NINFER_ASSERT_EQ(std::ssize(ended->owners_gone), owners_);
    }
    std::int64_t pages() const { return pages_; }

   private:
    std::int64_t owners_;
    std::int64_t pages_ = 0;  // that are given back
    std::optional<Conversations> world_;
    std::optional<PlanningSession> session_;
};

void bench_evictions(Report& report) {
    constexpr int kWorlds = 9;
    for (const std::int64_t owners : {1, 10, 50, 100}) {
        Evictions evictions(owners);
        const double seconds = bench::median_seconds(
            report.pool(), kWorlds, [&] { return evictions.prepare(); },
            [&](TargetId target) { evictions.carry_out(target); });
        const auto pages = static_cast<double>(evictions.pages());
        const std::string what = "seal, start and commit with " + std::to_string(owners) + " owners evicted";
        report.line(what.c_str(), seconds * 1e6, kStartLimitUs + pages * kEvictedPageLimitNs * 1e-3);
        std::printf("    %lld pages, %.2f ns each\n", static_cast<long long>(evictions.pages()), seconds * 1e9 / pages);
    }
}

int run() {
    bench::print_machine();
    ThreadPool pool(1);
    Conversations world;
    Report report(pool);
    bench_no_pressure(world, report);
    bench_start(world, report);
    bench_pressure(world, report);
    bench_evictions(report);
    return report.end();
}

}  // namespace
}  // namespace ninfer

int main() { return ninfer::run(); }
