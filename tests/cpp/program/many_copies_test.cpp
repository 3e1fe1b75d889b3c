// Rounds of thousands of copies: an engine with rows that decode is not held up by them at any boundary.

#include "tests/cpp/program/planning_fixture.h"

namespace ninfer {
namespace {

using testing_support::PlanningTest;

class ManyCopiesTest : public PlanningTest {
   protected:
    static constexpr std::int64_t kPages = 1500;

    // One long conversation leaves the device, and another one, that was demoted before, comes back to it.
    void start() {
        build({.pages = 2 * kPages + 2, .host_pages = 2 * kPages + 8, .max_context = 64 * (kPages + 1)});
        source_ = world().endpoint(world().make_tokens(64 * kPages));
        must(start_copy(state(), source_, Tier::kHost));
        world().settle();
        must(drop(state(), source_, Tier::kDevice));
        demoted_ = world().endpoint(world().make_tokens(64 * kPages));
        must(start_transaction(state(), must(session().seal(target())), {}));
        state().transaction->running->watch([](void* operations) { ++*static_cast<std::size_t*>(operations); },
                                            &operations_);
    }
    TargetId target() {
        const auto prompt = World::joined(world().tokens_of(source_), world().make_tokens(10));
        const auto found = candidates(prompt, {{source_, SourceUse::kRetain}});
        return degrade(ask(admission(found.back(), std::ssize(prompt))),
                       {pages_to_host(demoted_), step(DegradationKind::kImageToHost, demoted_)});
    }
    // What each phase of a round took, in advances; none does more than a step may.
    std::optional<ResourceResult> advance() {
        const RunningTransaction& running = *state().transaction->running;
        const auto name = std::string(to_string(running.phase())) + " of " + std::string(to_string(running.round()));
        operations_ = 0;
        auto ended = advance_transaction(state());
        EXPECT_LE(operations_, RunningTransaction::kCopiesPerStep) << name;
        ++advances_[name];
        if (!ended && transaction_waits(state())) world().settle();
        return ended;
    }
    std::int64_t pages_on(CheckpointHandle checkpoint, Tier tier) const {
        const SpaceFacts facts = must(state_facts(checkpoint));
        return tier == Tier::kDevice ? facts.pages_on_device : facts.pages_on_host;
    }
    Result<SpaceFacts, Refusal> state_facts(CheckpointHandle checkpoint) const {
        return world_->state.stores.kv().facts(world_->state.owners.find(checkpoint).value()->kv);
    }

    CheckpointHandle source_;
    CheckpointHandle demoted_;
    std::size_t operations_ = 0;
    std::map<std::string, int> advances_;
};

TEST_F(ManyCopiesTest, NoAdvanceDoesMoreThanAStepMay) {
    start();
    std::optional<ResourceResult> ended;
    while (!ended) ended = advance();
    EXPECT_EQ(to_string(ended->end), "committed");
    EXPECT_EQ(pages_on(demoted_, Tier::kHost), kPages);
    EXPECT_EQ(pages_on(demoted_, Tier::kDevice), 0);
    EXPECT_EQ(pages_on(source_, Tier::kDevice), kPages);
    constexpr auto kSteps = static_cast<int>(kPages / RunningTransaction::kCopiesPerStep);
    for (const char* round : {"demotion", "restore"})
        for (const char* phase : {"copy_preparation", "copies_in_flight", "copy_publication"})
            EXPECT_GT(advances_[std::string(phase) + " of " + round], kSteps) << phase << " of " << round;
    close(ended->sequence);
}

// In the middle of a phase too: what was published stays, everything else is given back, and nothing is lost.
TEST_F(ManyCopiesTest, EachAdvanceIsABoundary) {
    start();
    int total = 0;
    for (std::optional<ResourceResult> ended; !ended; ++total) ended = advance();
    for (int steps = 1; steps < total; steps += 3) {
        start();
        for (int i = 0; i < steps; ++i) ASSERT_FALSE(advance().has_value());
        ASSERT_TRUE(cancel_transaction(state()));
        std::optional<ResourceResult> ended;
        while (!ended) ended = advance();
        EXPECT_EQ(to_string(ended->end), "cancelled") << "after " << steps << " of " << total;
        EXPECT_EQ(ended->used, world().used());
        EXPECT_TRUE(ended->removed.empty());
        EXPECT_EQ(state().stores.copies().open_copies() + state().stores.copies().draining_copies(), 0);
        for (const auto& [checkpoint, placement] : ended->placements) expect_placement(checkpoint, placement);
        EXPECT_EQ(state().sequences.lanes_open(), 0);
        world().expect_all_bytes();
    }
}

TEST_F(ManyCopiesTest, AFailureAmongThemAborts) {
    for (const std::size_t which : {std::size_t{0}, std::size_t{700}, std::size_t{kPages}}) {
        start();
        while (state().transaction->running->phase() != TransactionPhase::kCopiesInFlight)
            ASSERT_FALSE(advance().has_value());
        world().engine->fail_pending(which);
        std::optional<ResourceResult> ended;
        while (!ended) ended = advance();
        EXPECT_EQ(to_string(ended->end), "copy_failed");
        EXPECT_FALSE(ended->changed);
        EXPECT_EQ(pages_on(demoted_, Tier::kHost), 0);
        EXPECT_EQ(pages_on(demoted_, Tier::kDevice), kPages);
        world().expect_all_bytes();
    }
}

}  // namespace
}  // namespace ninfer
