#pragma once

// Every target of small worlds, for every placement of their pages and images: whether it fits is told by a page-by-page
// model (naive_target.h). Those that fit are carried out, and what is measured at each stage, the peak, the placement of
// every page and all bytes are compared; each is also cancelled in one of its phases, or has a copy that fails, in turn, and
// where it is then and everything that is left is the model's to say. The others are refused. Under a sanitizer, which is
// slow, some placements are enough.

#include <array>
#include <cstdio>
#include <map>
#include <string>

#include "tests/cpp/transaction/naive_target.h"
#include "tests/cpp/transaction/transaction_fixture.h"

namespace ninfer::testing_support {

#ifdef __SANITIZE_ADDRESS__
constexpr std::int64_t kPlacementStride = 10;
#else
constexpr std::int64_t kPlacementStride = 1;
#endif

class SmallWorldsTest : public TransactionTest {
   protected:
    SmallWorldsTest() {
        release_sequences_ = false;
        check_every_mutation_ = false;
    }

    using MakeHoldings = std::vector<KnownHolding> (*)(StoresWorld&);

    // In what steps things are tried.
    enum class Grain {
        kFine,   // page by page and image by image; every degradation
        kOwner,  // a holding stays, is demoted as a whole, or goes; what two checkpoints of an owner have lies together
    };
    struct Shape {
        WorldSizes sizes;
        MakeHoldings make = nullptr;
        Grain grain = Grain::kFine;

        bool is_coarse() const { return grain == Grain::kOwner; }
    };

    // Where the world's pages and images lie: one digit each, 0 Device, 1 both, 2 Host.
    struct Placement {
        std::vector<PageId> pages;
        std::vector<ImageId> images;
        std::vector<int> digits;
    };

    void TearDown() override {
        const auto count = [](std::int64_t value) { return static_cast<long long>(value); };
        std::printf(
            "%lld targets carried out, %lld refused; aborted, by the phase they were in, cancelled and copy failed:\n",
            count(carried_out_), count(refused_));
        for (const auto& [moment, aborted] : aborted_)
            std::printf("    %-10s %-16s %8lld %8lld\n", std::string(to_string(moment.second)).c_str(),
                        std::string(to_string(moment.first)).c_str(), count(aborted.cancelled), count(aborted.failed));
        std::printf("    axis: refused for it, carried out with nothing left of it\n");
        for (std::size_t axis = 0; axis < kAxes.size(); ++axis)
            std::printf("    %-27s %8lld %8lld\n", kAxes[axis].name, count(lacking_[axis]), count(filled_[axis]));
        RecordProperty("carried_out", static_cast<int>(carried_out_));
        all_carried_out_ += carried_out_;
    }
    static void TearDownTestSuite() {
        std::printf("%lld targets carried out in all\n", static_cast<long long>(all_carried_out_));
        EXPECT_LE(100'000, all_carried_out_ * kPlacementStride);
    }
    // Targets were refused for it, and others just fit.
    void expect_bound(std::int64_t ResourceAxes::* axis) {
        for (std::size_t i = 0; i < kAxes.size(); ++i) {
            if (kAxes[i].axis != axis) continue;
            EXPECT_LE(100, lacking_[i] * kPlacementStride) << kAxes[i].name;
            EXPECT_LE(100, filled_[i] * kPlacementStride) << kAxes[i].name;
        }
    }

    // Builds the world once per target: a target leaves nothing of it as it was.
    void build_world(const Shape& shape, const std::vector<int>& digits) {
        build(shape.sizes);
        known_ = shape.make(world());
        is_placed_ = true;
        if (shape.is_coarse())
            place_owners(digits);
        else
            place(digits);
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
    void place(const std::vector<int>& digits) {
        const Placement placement = objects();
        for (std::size_t i = 0; i < digits.size(); ++i) {
            if (digits[i] == 0) continue;
            const bool leaves_device = digits[i] == 2;
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
    // One digit per pair of holdings: 0 as it is made, 1 on Host, 2 on both.
    void place_owners(const std::vector<int>& digits) {
        for (std::size_t i = 0; i < 2 * digits.size(); ++i)
            if (digits[i / 2] != 0 && is_placed_) put_on_host(known_[i], digits[i / 2] == 1);
    }
    void put_on_host(const KnownHolding& known, bool leaves_device) {
        const auto has_room = [&](std::int64_t blocks) {
            is_placed_ =
                is_placed_ && world().used().host_blocks + blocks <= axes_of(world().copies.capacity()).host_blocks;
            return is_placed_;
        };
        for (std::int64_t i = 0; i < pages_of(std::ssize(known.tokens)); ++i) {
            const PageId page = world().page_at(known.holding, i);
            const LogicalPage& found = *world().pages.find(page).value();
            if (!found.on_host() && has_room(StoresWorld::kPageBlocks)) world().page_to_host(page);
            if (leaves_device && is_placed_ && found.on_device()) world().page_off_device(page);
        }
        if (world().images == nullptr) return;
        const StateImage& image = *world().images->find(known.holding.image).value();
        if (!image.on_host() && has_room(StoresWorld::kImageBlocks)) world().image_to_host(known.holding);
        if (leaves_device && is_placed_ && image.on_device()) world().image_off_device(known.holding);
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
        if (!shape.is_coarse() || has_any_on_device(holding)) add_degradations(holding, shape, outcomes);
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
                    if (shape.is_coarse() && pages != 0) continue;
                    HoldingOutcome outcome = identity;
                    outcome.frontier = frontier;
                    outcome.device_pages = pages;
                    outcome.image = image;
                    if (shape.is_coarse() && world().images != nullptr) outcome.image = ImageOutcome::kHostOnly;
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
    bool has_any_on_device(std::int32_t holding) {
        const Holding& known = known_[static_cast<std::size_t>(holding)].holding;
        if (world().pages.facts(known.kv).value().pages_on_device > 0) return true;
        return world().images != nullptr && world().images->find(known.image).value()->on_device();
    }
    std::vector<ImageOutcome> image_outcomes(std::int32_t holding) {
        if (world().images == nullptr) return {ImageOutcome::kAsIs};
        const ImageId id = known_[static_cast<std::size_t>(holding)].holding.image;
        const StateImage& image = *world().images->find(id).value();
        if (!image.on_device()) return {ImageOutcome::kAsIs};
        if (!image.on_host()) return {ImageOutcome::kAsIs, ImageOutcome::kHostOnly};
        return {ImageOutcome::kAsIs, ImageOutcome::kHostOnly, ImageOutcome::kDeviceOnly};
    }

    std::vector<ResourceNeed> needs(const Shape& shape) {
        std::vector<ResourceNeed> needs = {{}, root(2)};
        if (shape.is_coarse()) needs.insert(needs.end(), {room({.device_pages = 2}), room({.host_blocks = 5})});
        if (shape.is_coarse() && world().images != nullptr) needs.push_back(room({.image_slots_checkpoint = 1}));
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
    static ResourceNeed room(const ResourceAxes& axes) { return {.room = axes}; }

    void try_all(const Shape& shape) {
        build_world(shape, {});
        std::vector<int> places = shape.is_coarse() ? std::vector<int>(known_.size() / 2, 0) : objects().digits;
        std::vector<int> place_bases(places.size(), shape.is_coarse() ? 2 : 3);
        place_bases.back() = 3;
        std::int64_t placement = 0;
        do {
            if (placement++ % kPlacementStride != 0) continue;
            build_world(shape, places);
            if (!is_placed_) continue;
            for (const ResourceNeed& need : needs(shape)) try_targets(shape, places, need);
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
        NaiveTarget naive(world(), known_, outcomes_, need);
        const ResourceAxes capacity = axes_of(world().copies.capacity());
        const ResourceAxes peak = naive.peak();
        const ResourceProjection projected = project(need);
        EXPECT_EQ(projected.peak, peak);
        for (std::size_t i = 0; i < kAxes.size(); ++i) {
            lacking_[i] += peak.*kAxes[i].axis > capacity.*kAxes[i].axis ? 1 : 0;
            filled_[i] += peak.fits(capacity) && peak.*kAxes[i].axis == capacity.*kAxes[i].axis ? 1 : 0;
        }
        if (!peak.fits(capacity)) {
            EXPECT_FALSE(ResourcePlan::seal(*projector_, outcomes_, need).has_value());
            ++refused_;
            return false;
        }
        EXPECT_EQ(projected.kv == KvActivation::kMove, naive.moves());
        commit(need);
        naive.expect_reached();
        ++carried_out_;
        const std::vector<HoldingOutcome> outcomes = outcomes_;
        build_world(shape, places);
        outcomes_ = outcomes;
        abort_in_turn(need);
        return true;
    }
    // Ends it in one of its phases, in turn: cancelled, or, while copies are on their way, one of them fails. Which phases
    // it comes through is the model's to say, and where it ends.
    void abort_in_turn(const ResourceNeed& need) {
        NaiveTarget naive(world(), known_, outcomes_, need);
        const auto moments = naive.moments();
        const auto turn = static_cast<std::size_t>(carried_out_);
        const NaiveTarget::Moment& moment = moments[turn % moments.size()];
        const auto running = begin(need);
        for (std::size_t i = 0; i < turn % moments.size(); ++i) {
            expect_moment(*running, moments[i]);
            step(*running);
        }
        expect_moment(*running, moment);
        const bool fails = moment.phase == TransactionPhase::kCopiesInFlight && turn / moments.size() % 2 == 0;
        if (fails)
            world().engine.fail_pending(turn % static_cast<std::size_t>(moment.copies));
        else
            running->cancel();
        end(*running);
        const TransactionResult result = running->result();
        EXPECT_EQ(result.end, fails ? TransactionEnd::kCopyFailed : TransactionEnd::kCancelled);
        EXPECT_EQ(result.peak, peak_);
        EXPECT_EQ(world().engine.copies(), 0U);
        naive.expect_aborted(moment.reached(), result);
        expect_holdings(result);
        check_invariants();
        Aborted& aborted = aborted_[{moment.phase, moment.round}];
        ++(fails ? aborted.failed : aborted.cancelled);
    }
    static void expect_moment(const RunningTransaction& running, const NaiveTarget::Moment& moment) {
        EXPECT_EQ(to_string(running.phase()), to_string(moment.phase));
        EXPECT_EQ(to_string(running.round()), to_string(moment.round));
        EXPECT_EQ(running.open_copies(), moment.copies);
    }
    void end(RunningTransaction& running) {
        running.advance();
        while (!running.ended()) {
            world().engine.complete_all();
            running.step();
        }
    }

    struct Axis {
        const char* name;
        std::int64_t ResourceAxes::* axis;
    };
    static constexpr std::array kAxes = {Axis{"device pages", &ResourceAxes::device_pages},
                                         Axis{"image slots, active", &ResourceAxes::image_slots_active},
                                         Axis{"image slots, checkpoints", &ResourceAxes::image_slots_checkpoint},
                                         Axis{"host blocks", &ResourceAxes::host_blocks}};
    struct Aborted {
        std::int64_t cancelled = 0;
        std::int64_t failed = 0;
    };

    bool is_placed_ = true;  // Host has room for that
    std::int64_t carried_out_ = 0;
    std::int64_t refused_ = 0;
    std::array<std::int64_t, kAxes.size()> lacking_ = {};
    std::array<std::int64_t, kAxes.size()> filled_ = {};
    std::map<std::pair<TransactionPhase, CopyRound>, Aborted> aborted_;
    static inline std::int64_t all_carried_out_ = 0;
};

}  // namespace ninfer::testing_support
