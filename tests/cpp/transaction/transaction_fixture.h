#pragma once

// Targets over a small world: projected, sealed, carried out step by step, with everything compared on the way.

#include <optional>

#include "tests/cpp/transaction/stores_world.h"
#include "tests/support/test_seed.h"

namespace ninfer::testing_support {

class TransactionTest : public testing::Test {
   protected:
    using Axes = ResourceAxes;
    static constexpr WorldSizes kNoImages = {.active_slots = 0, .checkpoint_slots = 0};

    void build(const WorldSizes& sizes) { world_ = std::make_unique<StoresWorld>(sizes, memory_, test_seed()); }
    StoresWorld& world() { return *world_; }
    void TearDown() override { check_invariants(); }
    void check_invariants() {
        if (world_) world_->copies.check_invariants();
    }

    // The domain of these holdings; `outcomes_` is its identity.
    void read(const std::vector<KnownHolding>& known) {
        known_ = known;
        std::vector<Holding> holdings;
        for (const KnownHolding& one : known) holdings.push_back(one.holding);
        domain_.emplace(world().stores());
        StoresWorld::must(domain_->read(holdings, kRevision));
        projector_.emplace(*domain_);
        outcomes_ = domain_->identity();
    }
    ResourceProjection project(const ResourceNeed& need) { return projector_->project(outcomes_, need); }
    ResourceProjection project() { return project({}); }

    static Axes change_until(const ResourceProjection& projection, ResourceStage stage) {
        return projection.used_at(stage) - projection.used.front();
    }
    // Nothing of this holding is wanted on Device.
    void demote(std::size_t holding) {
        outcomes_[holding].device_pages = 0;
        if (world().images != nullptr) outcomes_[holding].image = ImageOutcome::kHostOnly;
    }

    static ResourceNeed from_source(std::int32_t source, std::int64_t frontier, std::int64_t pages, bool consumes) {
        return {.kind = ResourceNeed::Kind::kSource,
                .consumes = consumes,
                .source = source,
                .frontier = frontier,
                .pages = pages,
                .room = {}};
    }
    static ResourceNeed root(std::int64_t pages) {
        return {.kind = ResourceNeed::Kind::kRoot, .pages = pages, .room = {}};
    }

    std::unique_ptr<RunningTransaction> begin(const ResourceNeed& need) {
        auto plan = StoresWorld::must(ResourcePlan::seal(*projector_, outcomes_, need));
        auto running = StoresWorld::must(RunningTransaction::start(std::move(plan), world().stores(), kRevision));
        running->watch([](void* self) { static_cast<TransactionTest*>(self)->after_mutation(); }, this);
        peak_ = world().used();
        return running;
    }
    void after_mutation() {
        peak_ = larger_of(peak_, world().used());
        if (check_every_mutation_) check_invariants();
    }
    // One step; the copies that it waits for arrive. The stage that it reaches takes exactly what was projected.
    void step(RunningTransaction& running) {
        if (running.phase() == TransactionPhase::kCopiesInFlight) {
            world().engine.complete_all();
            world().copies.poll(SIZE_MAX);
        }
        running.step();
        EXPECT_EQ(world().used(), running.projection().used_at(running.stage()))
            << to_string(running.phase()) << " of " << to_string(running.round());
    }
    // Carries the target out. Measured and projected peaks, and placements, are equal; bytes are what they were.
    TransactionResult commit(const ResourceNeed& need) {
        const ResourceProjection projected = project(need);
        const auto placements = projected_placements();
        const auto running = begin(need);
        while (!running->ended()) step(*running);
        TransactionResult result = running->result();
        EXPECT_EQ(to_string(result.end), "committed");
        EXPECT_EQ(larger_of(peak_, world().used() + need.room), projected.peak);
        EXPECT_EQ(result.peak, peak_);
        EXPECT_EQ(result.used, projected.used_at(ResourceStage::kCommitted));
        std::int64_t removed = 0;
        for (std::size_t i = 0; i < result.holdings.size(); ++i) {
            EXPECT_EQ(result.holdings[i].placement, placements[i]) << "holding " << i;
            removed += result.holdings[i].removed ? 1 : 0;
        }
        EXPECT_EQ(removed, projected.removed);
        EXPECT_TRUE(result.changed || need.kind == ResourceNeed::Kind::kRoom)
            << "a new sequence takes a slot and pages";
        expect_holdings(result);
        expect_sequence(result, need);
        check_invariants();
        return result;
    }
    std::vector<HoldingPlacement> projected_placements() const {
        std::vector<HoldingPlacement> placements;
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(known_.size()); ++i)
            placements.push_back(projector_->placement(i));
        return placements;
    }
    // Those that remain show what they did.
    void expect_holdings(const TransactionResult& result) {
        for (std::size_t i = 0; i < result.holdings.size(); ++i)
            if (!result.holdings[i].removed)
                world().expect_shows(result.holdings[i].holding, known_[i].tokens, known_[i].image_word);
    }
    // The new sequence reads what its source had, and has a place for all that it was promised.
    void expect_sequence(const TransactionResult& result, const ResourceNeed& need) {
        EXPECT_EQ(result.kv != SpaceId{}, need.kind != ResourceNeed::Kind::kRoom);
        if (result.kv == SpaceId{}) return;
        KnownSequence sequence{.kv = result.kv, .image = result.image, .tokens = {}, .image_word = 0};
        if (need.kind == ResourceNeed::Kind::kSource) {
            const KnownHolding& source = known_[static_cast<std::size_t>(need.source)];
            sequence.tokens.assign(source.tokens.begin(), source.tokens.begin() + need.frontier);
            sequence.image_word = source.image_word;
        }
        world().expect_shows(sequence);
        const AddressSpace& space = *world().pages.find(result.kv).value();
        EXPECT_EQ(space.pages_mapped() + space.reserved, need.pages);
        if (!release_sequences_) return;
        world().compute(sequence, need.pages * kPageTokens);  // the others are not touched by what it writes
        world().expect_shows(sequence);
        expect_holdings(result);
        world().release(sequence);
    }

    static constexpr std::uint64_t kRevision = 7;

    SeedTrace trace_;
    WorldMemory memory_;
    std::unique_ptr<StoresWorld> world_;
    std::vector<KnownHolding> known_;
    std::optional<TargetDomain> domain_;
    std::optional<ResourceProjector> projector_;
    std::vector<HoldingOutcome> outcomes_;
    ResourceAxes peak_;  // measured at every mutation
    bool release_sequences_ = true;
    bool check_every_mutation_ = true;
};

}  // namespace ninfer::testing_support
