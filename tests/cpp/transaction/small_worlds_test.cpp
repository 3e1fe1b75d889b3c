// Every target of small worlds (at most 3 image slots, 6 pages, 3 owners with 2 checkpoints each), for every placement of
// their pages and images: those that fit are carried out, and what is measured at each stage, the peak, the placement of
// every page and all bytes are compared; each is also cancelled in one of its phases, or has a copy that fails, in turn.
// The others are refused. The number of targets that were carried out is printed. Under a sanitizer, which is slow, every
// tenth placement is enough.

#include <cstdio>

#include "tests/cpp/transaction/naive_target.h"
#include "tests/cpp/transaction/transaction_fixture.h"

namespace ninfer {
namespace {

using testing_support::KnownHolding;
using testing_support::KnownSequence;
using testing_support::NaiveTarget;
using testing_support::StoresWorld;
using testing_support::WorldSizes;

#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kPlacementStride = 10;
#else
constexpr std::int64_t kPlacementStride = 1;
#endif

class SmallWorldsTest : public testing_support::TransactionTest {
   protected:
    SmallWorldsTest() {
        release_sequences_ = false;
        check_every_mutation_ = false;
    }

    using MakeHoldings = std::vector<KnownHolding> (*)(StoresWorld&);

    struct Shape {
        WorldSizes sizes;
        MakeHoldings make = nullptr;
        bool coarse = false;  // a holding stays, is demoted as a whole, or goes; pages lie on one side
    };

    // Where the world's pages and images lie: one digit each, 0 Device, 1 both, 2 Host.
    struct Placement {
        std::vector<PageId> pages;
        std::vector<ImageId> images;
        std::vector<int> digits;
    };

    void TearDown() override {
        const auto count = [](std::int64_t value) { return static_cast<long long>(value); };
        std::printf("%lld targets carried out, %lld cancelled, %lld with a failed copy, %lld refused\n",
                    count(carried_out_), count(cancelled_), count(failed_), count(refused_));
        RecordProperty("carried_out", static_cast<int>(carried_out_));
    }

    // Builds the world once per target: a target leaves nothing of it as it was.
    void build_world(const Shape& shape, const std::vector<int>& digits) {
        build(shape.sizes);
        known_ = shape.make(world());
        place(digits, shape.coarse);
        read(known_);
    }
    Placement objects() {
        Placement placement;
        for (const KnownHolding& known : known_) {
            world().pages.for_each_page(known.holding.kv, [&](PageId id, const LogicalPage& page) {
                const bool is_new = std::ranges::find(placement.pages, id) == placement.pages.end();
                if (is_new && world().pages.find(id).value()->on_device() && !page.on_host())
                    placement.pages.push_back(id);
            });
            if (world().images == nullptr) continue;
            const bool is_new = std::ranges::find(placement.images, known.holding.image) == placement.images.end();
            const StateImage& image = *world().images->find(known.holding.image).value();
            if (is_new && image.on_device()) placement.images.push_back(known.holding.image);
        }
        placement.digits.assign(placement.pages.size() + placement.images.size(), 0);
        return placement;
    }
    void place(const std::vector<int>& digits, bool coarse) {
        const Placement placement = objects();
        for (std::size_t i = 0; i < digits.size(); ++i) {
            if (digits[i] == 0) continue;
            const bool leaves_device = coarse || digits[i] == 2;
            if (i < placement.pages.size()) {
                const PageId page = placement.pages[i];
                world().page_to_host(page);
                // Not if an active sequence reads it.
                if (leaves_device) static_cast<void>(world().pages.drop(page, Tier::kDevice).has_value());
            } else {
                const Holding holding{{}, placement.images[i - placement.pages.size()]};
                world().image_to_host(holding);
                if (leaves_device) world().image_off_device(holding);
            }
        }
    }
    // The next number; false after the last one.
    static bool count_up(std::vector<int>& digits, const std::vector<int>& bases) {
        for (std::size_t i = 0; i < digits.size(); ++i) {
            if (++digits[i] < bases[i]) return true;
            digits[i] = 0;
        }
        return false;
    }

    std::vector<HoldingOutcome> outcomes_of(std::int32_t holding, const Shape& shape, const ResourceNeed& need) {
        const HoldingOutcome identity = domain_->identity_of(holding);
        std::vector<HoldingOutcome> outcomes = {identity};
        if (has_redundant_pages(holding)) {
            outcomes.push_back(identity);
            outcomes.back().drops_host = true;
        }
        if (holding == need.source) {
            if (std::ranges::count(image_outcomes(holding), ImageOutcome::kDeviceOnly) == 0) return outcomes;
            outcomes.push_back(outcomes.back());
            outcomes.back().image = ImageOutcome::kDeviceOnly;
            return outcomes;
        }
        outcomes.push_back(identity);
        outcomes.back().survives = false;
        add_degradations(holding, shape, outcomes);
        return outcomes;
    }
    void add_degradations(std::int32_t holding, const Shape& shape, std::vector<HoldingOutcome>& outcomes) {
        const HoldingOutcome identity = domain_->identity_of(holding);
        std::vector<std::int64_t> frontiers = {identity.frontier};
        if (world().images == nullptr)
            for (std::int64_t cut = 64; cut < identity.frontier; cut += 64)
                frontiers.insert(frontiers.end(), {cut, cut - 9});
        for (const ImageOutcome image : image_outcomes(holding)) {
            for (const std::int64_t frontier : frontiers) {
                for (std::int32_t pages = 0; pages <= pages_of(frontier); ++pages) {
                    if (shape.coarse && pages != 0) continue;
                    HoldingOutcome outcome = identity;
                    outcome.frontier = frontier;
                    outcome.device_pages = pages;
                    outcome.image = image;
                    if (shape.coarse && world().images != nullptr) outcome.image = ImageOutcome::kHostOnly;
                    if (std::ranges::find(outcomes, outcome) == outcomes.end()) outcomes.push_back(outcome);
                }
            }
        }
    }
    bool has_redundant_pages(std::int32_t holding) {
        bool redundant = false;
        world().pages.for_each_page(
            known_[static_cast<std::size_t>(holding)].holding.kv,
            [&](PageId, const LogicalPage& page) { redundant = redundant || (page.on_device() && page.on_host()); });
        return redundant;
    }
    std::vector<ImageOutcome> image_outcomes(std::int32_t holding) {
        if (world().images == nullptr) return {ImageOutcome::kAsIs};
        const ImageId id = known_[static_cast<std::size_t>(holding)].holding.image;
        const StateImage& image = *world().images->find(id).value();
        if (!image.on_device()) return {ImageOutcome::kAsIs};
        if (!image.on_host()) return {ImageOutcome::kAsIs, ImageOutcome::kHostOnly};
        return {ImageOutcome::kAsIs, ImageOutcome::kHostOnly, ImageOutcome::kDeviceOnly};
    }

    std::vector<ResourceNeed> needs() {
        std::vector<ResourceNeed> needs = {{}, root(2)};
        for (std::int32_t source = 0; source < static_cast<std::int32_t>(known_.size()); ++source) {
            const std::int64_t frontier = domain_->identity_of(source).frontier;
            for (const bool consumes : {false, true}) {
                needs.push_back(from_source(source, frontier, pages_of(frontier) + 1, consumes));
                if (world().images != nullptr || frontier <= 64) continue;
                needs.push_back(from_source(source, 64, 2, consumes));
                needs.push_back(from_source(source, 50, 1, consumes));
            }
        }
        return needs;
    }

    void try_all(const Shape& shape) {
        build_world(shape, {});
        std::vector<int> places = objects().digits;
        const std::vector<int> place_bases(places.size(), shape.coarse ? 2 : 3);
        std::int64_t placement = 0;
        do {
            if (placement++ % kPlacementStride != 0) continue;
            build_world(shape, places);
            for (const ResourceNeed& need : needs()) try_targets(shape, places, need);
        } while (count_up(places, place_bases) && !HasFailure());
    }
    void try_targets(const Shape& shape, const std::vector<int>& places, const ResourceNeed& need) {
        build_world(shape, places);
        std::vector<std::vector<HoldingOutcome>> choices;
        std::vector<int> bases;
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(known_.size()); ++i) {
            choices.push_back(outcomes_of(i, shape, need));
            bases.push_back(static_cast<int>(choices.back().size()));
        }
        std::vector<int> digits(choices.size(), 0);
        bool is_built = true;
        do {
            if (!is_built) build_world(shape, places);
            for (std::size_t i = 0; i < digits.size(); ++i)
                outcomes_[i] = choices[i][static_cast<std::size_t>(digits[i])];
            is_built = !try_target(shape, places, need);
        } while (count_up(digits, bases) && !HasFailure());
    }
    // Whether the world was changed.
    bool try_target(const Shape& shape, const std::vector<int>& places, const ResourceNeed& need) {
        if (!project(need).fits()) {
            EXPECT_FALSE(ResourcePlan::seal(*projector_, outcomes_, need).has_value());
            ++refused_;
            return false;
        }
        NaiveTarget naive(world(), known_, outcomes_, need);
        EXPECT_EQ(project(need).kv == KvActivation::kMove, naive.moves());
        commit(need);
        naive.expect_reached();
        ++carried_out_;
        const std::vector<HoldingOutcome> outcomes = outcomes_;
        build_world(shape, places);
        outcomes_ = outcomes;
        abort_in_turn(need);
        return true;
    }
    // Ends it in one of its phases, in turn: cancelled, or one of its copies fails.
    void abort_in_turn(const ResourceNeed& need) {
        const auto running = begin(need);
        for (std::int64_t steps = carried_out_ % 10; steps > 0 && !running->ended(); --steps) step(*running);
        if (running->ended()) return;
        const ResourceStage stage = running->stage();
        const bool fails = running->open_copies() > 0 && running->phase() == TransactionPhase::kCopiesInFlight &&
                           carried_out_ / 10 % 2 == 0;
        if (fails)
            world().engine.fail_pending(static_cast<std::size_t>(carried_out_ % running->open_copies()));
        else
            running->cancel();
        running->advance();
        while (!running->ended()) {
            world().engine.complete_all();
            running->step();
        }
        const TransactionResult result = running->result();
        EXPECT_TRUE(world().used().fits(running->projection().used_at(stage)));
        EXPECT_EQ(result.end, fails ? TransactionEnd::kCopyFailed : TransactionEnd::kCancelled);
        EXPECT_EQ(result.kv, SpaceId{});
        EXPECT_EQ(world().engine.copies(), 0U);
        EXPECT_FALSE(has_source(need) && result.holdings[static_cast<std::size_t>(need.source)].removed);
        expect_holdings(result);
        check_invariants();
        ++(fails ? failed_ : cancelled_);
    }
    static bool has_source(const ResourceNeed& need) { return need.kind == ResourceNeed::Kind::kSource; }

    std::int64_t carried_out_ = 0;
    std::int64_t cancelled_ = 0;
    std::int64_t failed_ = 0;
    std::int64_t refused_ = 0;
};

TEST_F(SmallWorldsTest, AliasesAndAStranger) {
    try_all({.sizes = {.pages = 4, .active_slots = 1, .checkpoint_slots = 2, .host_blocks = 12},
             .make = [](StoresWorld& world) {
                 const KnownHolding first = world.make(100);
                 return std::vector{first, world.alias(first), world.make(64)};
             }});
    EXPECT_GE(carried_out_ * kPlacementStride, 100000);
}

TEST_F(SmallWorldsTest, BranchesOfOneBeginning) {
    try_all({.sizes = {.pages = 4, .active_slots = 1, .checkpoint_slots = 2, .host_blocks = 15},
             .make = [](StoresWorld& world) {
                 const KnownHolding base = world.make(64);
                 const KnownHolding left = world.extend(base, 100);
                 world.image_to_host(left.holding);
                 world.image_off_device(left.holding);
                 return std::vector{base, left, world.extend(base, 128)};
             }});
}

TEST_F(SmallWorldsTest, CutsWithoutImages) {
    try_all({.sizes = {.pages = 5, .active_slots = 0, .checkpoint_slots = 0, .host_blocks = 8},
             .make = [](StoresWorld& world) {
                 const KnownHolding whole = world.make(140);
                 return std::vector{whole, world.alias(whole, 128), world.make(50)};
             }});
}

TEST_F(SmallWorldsTest, AnActiveSequenceAndAHoldingOutsideLookOn) {
    try_all({.sizes = {.pages = 5, .active_slots = 2, .checkpoint_slots = 1, .host_blocks = 9},
             .make = [](StoresWorld& world) {
                 const KnownHolding base = world.make(140);
                 KnownSequence reader = world.fork(base, 140, 1);
                 world.compute(reader, 145);
                 world.alias(base, 64);
                 return std::vector{base, world.alias(base)};
             }});
}

TEST_F(SmallWorldsTest, ThreeOwnersWithTwoCheckpointsEach) {
    try_all({.sizes = {.pages = 6, .active_slots = 1, .checkpoint_slots = 2, .host_blocks = 18},
             .make =
                 [](StoresWorld& world) {
                     std::vector<KnownHolding> known;
                     for (const std::int64_t tokens : {64, 70, 64}) {
                         known.push_back(world.make(tokens));
                         known.push_back(world.alias(known.back()));
                         if (known.size() >= 6) break;
                         world.image_to_host(known.back().holding);
                         world.image_off_device(known.back().holding);
                     }
                     return known;
                 },
             .coarse = true});
}

}  // namespace
}  // namespace ninfer
