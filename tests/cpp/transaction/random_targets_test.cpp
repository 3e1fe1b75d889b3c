// One world that lives through thousands of random transactions: holdings are made, branch, are cut, move between the tiers
// and go, sequences start from them, grow meanwhile and finish; transactions are committed, cancelled, or a copy fails. After
// each, the page-by-page model, the projection and all bytes agree. The seed is printed with a failure.

#include "tests/cpp/transaction/naive_target.h"
#include "tests/cpp/transaction/transaction_fixture.h"

namespace ninfer {
namespace {

using testing_support::KnownHolding;
using testing_support::KnownSequence;
using testing_support::NaiveTarget;
using testing_support::StoresWorld;
using testing_support::WorldSizes;

class RandomTargetsTest : public testing_support::TransactionTest {
   protected:
    static constexpr std::size_t kHoldings = 8;

    // [0, end)
    std::int64_t draw(std::int64_t end) {
        return static_cast<std::int64_t>(world().random() % static_cast<std::uint64_t>(end));
    }
    bool chance(std::int64_t percent) { return draw(100) < percent; }

    void run(const WorldSizes& sizes, int transactions) {
        build(sizes);
        check_every_mutation_ = false;
        for (int i = 0; i < transactions && !HasFailure(); ++i) {
            while (left_.size() < kHoldings && chance(60)) add_holding();
            read(left_);
            const ResourceNeed need = random_need();
            for (std::size_t h = 0; h < left_.size(); ++h) outcomes_[h] = random_outcome(h, need);
            attempt(need);
            check_invariants();
        }
        EXPECT_GT(committed_, transactions / 10);
        EXPECT_GT(cancelled_, transactions / 50);
        EXPECT_GT(failed_, transactions / 100);
        for (const KnownHolding& known : left_) world().release(known.holding);
        EXPECT_EQ(world().used(), (Axes{}));
    }

    // Whatever has room; else there is one less.
    void add_holding() {
        const std::int64_t tokens = 1 + draw(220);
        const bool has_slots = world().images == nullptr ||
                               (world().images->checkpoint_slots_free() > 0 && world().images->active_slots_free() > 0);
        const bool has_room = has_slots && world().pages.device().pages_unpromised() >= pages_of(tokens) + 1;
        if (!left_.empty() && (chance(40) || !has_room)) {
            const KnownHolding& base = left_[static_cast<std::size_t>(draw(std::ssize(left_)))];
            const auto frontier = std::ssize(base.tokens);
            const std::int64_t kept = world().images == nullptr ? 1 + draw(frontier) : frontier;
            left_.push_back(world().alias(base, kept));
        } else if (has_room) {
            left_.push_back(can_extend() ? world().extend(left_.back(), std::ssize(left_.back().tokens) + tokens)
                                         : world().make(tokens));
        }
    }
    bool can_extend() {
        if (left_.empty() || chance(50)) return false;
        const SpaceFacts facts = world().pages.facts(left_.back().holding.kv).value();
        const bool image_is_there =
            world().images == nullptr || world().images->find(left_.back().holding.image).value()->on_device();
        return image_is_there && facts.device_ready() && facts.frontier < 200 &&
               world().pages.device().pages_unpromised() >= 6;
    }

    ResourceNeed random_need() {
        if (left_.empty() || chance(20)) return chance(50) ? ResourceNeed{} : root(1 + draw(3));
        const std::int64_t source = draw(std::ssize(left_));
        const auto whole = std::ssize(left_[static_cast<std::size_t>(source)].tokens);
        const bool cut = world().images == nullptr && chance(50);
        const std::int64_t frontier = cut ? draw(whole + 1) : whole;
        return from_source(static_cast<std::int32_t>(source), frontier, pages_of(frontier) + draw(3), chance(50));
    }
    bool is_image_on_device(std::size_t index) {
        return world().images != nullptr && world().images->find(left_[index].holding.image).value()->on_device();
    }
    HoldingOutcome random_outcome(std::size_t index, const ResourceNeed& need) {
        HoldingOutcome outcome = domain_->identity_of(static_cast<std::int32_t>(index));
        outcome.drops_host = chance(20);
        if (static_cast<std::int32_t>(index) == need.source) {
            if (is_image_on_device(index) && chance(20)) outcome.image = ImageOutcome::kDeviceOnly;
            return outcome;
        }
        if (chance(40)) return outcome;
        outcome.survives = chance(80);
        outcome.device_pages = static_cast<std::int32_t>(draw(outcome.device_pages + 1));
        if (world().images == nullptr) {
            if (chance(30)) outcome.frontier = 1 + draw(outcome.frontier);
            return outcome;
        }
        const bool on_device = is_image_on_device(index);
        if (chance(40)) outcome.image = on_device && chance(50) ? ImageOutcome::kDeviceOnly : ImageOutcome::kHostOnly;
        return outcome;
    }

    void attempt(const ResourceNeed& need) {
        const ResourceProjection projection = project(need);
        if (!projection.fits()) {
            // What cannot be afforded otherwise.
            const auto victim = static_cast<std::size_t>(draw(std::ssize(left_) + 1));
            if (victim == left_.size()) return;
            world().release(left_[victim].holding);
            left_.erase(left_.begin() + static_cast<std::ptrdiff_t>(victim));
            return;
        }
        NaiveTarget naive(world(), known_, outcomes_, need);
        const auto placements = projected_placements();
        const auto running = begin(need);
        const std::int64_t ends_after = chance(60) ? 100 : draw(9);
        bool aborts = false;
        for (std::int64_t steps = 0; !running->ended() && !aborts; ++steps) {
            aborts = steps >= ends_after && abort(*running);
            if (!aborts) step(*running);
        }
        while (!running->ended()) {
            world().engine.complete_all();
            running->advance();
        }
        const TransactionResult result = running->result();
        ++(result.end == TransactionEnd::kCommitted   ? committed_
           : result.end == TransactionEnd::kCancelled ? cancelled_
                                                      : failed_);
        if (result.end == TransactionEnd::kCommitted) {
            naive.expect_reached();
            EXPECT_EQ(larger_of(peak_, world().used() + need.room), projection.peak);
            for (std::size_t h = 0; h < placements.size(); ++h) EXPECT_EQ(result.holdings[h].placement, placements[h]);
        }
        expect_holdings(result);
        adopt(result, need);
    }
    // A copy fails if there is one, or it is cancelled.
    bool abort(RunningTransaction& running) {
        if (running.phase() == TransactionPhase::kCopiesInFlight && chance(60))
            world().engine.fail_pending(static_cast<std::size_t>(draw(running.open_copies())));
        else
            running.cancel();
        return true;
    }
    void adopt(const TransactionResult& result, const ResourceNeed& need) {
        std::vector<KnownHolding> next;
        for (std::size_t h = 0; h < result.holdings.size(); ++h) {
            if (result.holdings[h].removed) continue;
            next.push_back(known_[h]);
            next.back().holding = result.holdings[h].holding;
            next.back().tokens.resize(static_cast<std::size_t>(result.holdings[h].frontier));
        }
        left_ = std::move(next);
        if (result.kv == SpaceId{}) return;
        KnownSequence sequence{.kv = result.kv, .image = result.image, .tokens = {}, .image_word = 0};
        if (need.kind == ResourceNeed::Kind::kSource) {
            const KnownHolding& source = known_[static_cast<std::size_t>(need.source)];
            sequence.tokens.assign(source.tokens.begin(), source.tokens.begin() + need.frontier);
            sequence.image_word = source.image_word;
            world().expect_shows(sequence);
        }
        const std::int64_t place = need.pages * kPageTokens;
        const std::int64_t end = std::ssize(sequence.tokens) + draw(place - std::ssize(sequence.tokens) + 1);
        const bool has_slot = world().images == nullptr || world().images->checkpoint_slots_free() > 0;
        if (!has_slot || end < 1 || left_.size() >= kHoldings || std::ssize(sequence.tokens) == end)
            return world().release(sequence);
        world().compute(sequence, end);
        left_.push_back(world().finish(sequence));
    }

    std::vector<KnownHolding> left_;
    int committed_ = 0;
    int cancelled_ = 0;
    int failed_ = 0;
};

TEST_F(RandomTargetsTest, WithImages) {
    run({.pages = 16, .active_slots = 1, .checkpoint_slots = 3, .host_blocks = 40}, 8000);
}
TEST_F(RandomTargetsTest, WithoutImages) {
    run({.pages = 16, .active_slots = 0, .checkpoint_slots = 0, .host_blocks = 24}, 8000);
}

}  // namespace
}  // namespace ninfer
