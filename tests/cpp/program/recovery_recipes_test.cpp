// How checkpoints that a target changes could be had again.

#include "tests/cpp/program/planning_fixture.h"

namespace ninfer {
namespace {

using testing_support::ContextWorld;
using testing_support::PlanningTest;
using testing_support::Tokens;

struct Lineage {
    CheckpointHandle anchor;    // 64
    CheckpointHandle endpoint;  // 164
};

Lineage make_lineage(ContextWorld& world) {
    const auto sequence = world.open(164);
    world.compute(sequence, world.make_tokens(64));
    Lineage made;
    made.anchor = ContextWorld::must(capture(world.state, sequence, {}));
    made.endpoint = world.endpoint_of(sequence, world.make_tokens(100));
    return made;
}

std::vector<RecoveryRecipe> of(const std::vector<RecoveryRecipe>& recipes, CheckpointHandle checkpoint) {
    std::vector<RecoveryRecipe> found;
    for (const RecoveryRecipe& recipe : recipes)
        if (recipe.checkpoint == checkpoint) found.push_back(recipe);
    return found;
}

TEST_F(PlanningTest, RecoveriesNameEveryBaseThatIsLeft) {
    build({.pages = 16, .checkpoint_slots = 4, .host_pages = 12});
    const auto made = make_lineage(world());
    const auto other = world().endpoint(world().make_tokens(64));
    const auto identity = ask(root(64 * 12));
    const auto base = must(session().baseline(0));
    // Each is ready itself; an unaligned one has its tail copied.
    ASSERT_EQ(of(base, made.anchor).size(), 1U);
    EXPECT_EQ(of(base, made.anchor)[0].base, made.anchor);
    EXPECT_EQ(of(base, made.anchor)[0].to_device, CopyWork{});
    ASSERT_EQ(of(base, made.endpoint).size(), 1U);
    EXPECT_EQ(of(base, made.endpoint)[0].base_frontier, 164);
    EXPECT_EQ(of(base, made.endpoint)[0].within_device.operations, 1);

    const auto deleted = degrade(identity, {remove(made.endpoint)});
    const auto demoted =
        degrade(identity, {pages_to_host(made.anchor), step(DegradationKind::kImageToHost, made.anchor)});
    const auto all = must(session().maximal(0));
    TargetFacts facts;
    const std::array targets{identity, deleted, demoted, all};
    must(session().assess_many(targets, facts));
    ASSERT_EQ(facts.assessments.size(), 4U);
    std::array<std::vector<RecoveryRecipe>, 4> by_target;
    for (const RecoveryRecipe& recipe : facts.recipes) {
        by_target[static_cast<std::size_t>(recipe.target)].push_back(recipe);
        EXPECT_TRUE(recipe.checkpoint != other || recipe.target == 3)
            << "it differs from the identity in the last only";
    }
    EXPECT_TRUE(by_target[0].empty());
    ASSERT_EQ(by_target[1].size(), 1U);  // from the anchor; root would compute more and save nothing
    EXPECT_EQ(by_target[1][0].checkpoint, made.endpoint);
    EXPECT_EQ(by_target[1][0].base, made.anchor);
    EXPECT_EQ(by_target[1][0].base_frontier, 64);
    // The anchor's page is wanted by the endpoint on Device, so that its image alone is to be restored. The endpoint is
    // ready itself and needs no base.
    const auto anchor = of(by_target[2], made.anchor);
    ASSERT_EQ(anchor.size(), 2U);
    EXPECT_EQ(anchor[0].to_device.operations, 1);
    EXPECT_EQ(anchor[1].base, CheckpointHandle{});
    EXPECT_EQ(by_target[2].size(), 2U);
    for (const RecoveryRecipe& recipe : by_target[3]) EXPECT_EQ(recipe.base, CheckpointHandle{});
    EXPECT_EQ(by_target[3].size(), 3U);

    // Both on Host: the endpoint may be restored, or its anchor, or nothing. Without the anchor it loses that way.
    commit(
        degrade(ask(NoPublication{}), {pages_to_host(made.endpoint), step(DegradationKind::kImageToHost, made.endpoint),
                                       pages_to_host(made.anchor), step(DegradationKind::kImageToHost, made.anchor)}));
    const auto without = degrade(ask(NoPublication{}), {remove(made.anchor)});
    const auto ways = of(must(session().baseline(0)), made.endpoint);
    ASSERT_EQ(ways.size(), 3U);
    EXPECT_EQ(ways[0].to_device.operations, 3 + 1) << "the partial page and the image too";
    must(session().assess_many({&without, 1}, facts));
    EXPECT_EQ(of(facts.recipes, made.endpoint).size(), 2U);
    EXPECT_EQ(of(facts.recipes, made.anchor).size(), 1U);
}

TEST_F(PlanningTest, AConsumedSourceIsNoBaseAnyMore) {
    build({.pages = 16, .checkpoint_slots = 4, .host_pages = 12});
    const auto made = make_lineage(world());
    const Tokens prompt = ContextWorld::joined(world().tokens_of(made.endpoint), world().make_tokens(1));
    const auto found = candidates(prompt, {{made.endpoint, SourceUse::kConsume}, {made.endpoint}});
    const std::vector options{admission(found[1], 256), admission(found[2], 256)};
    must(session().open(options, {}));
    const auto consumed = of(must(session().baseline(0)), made.endpoint);
    ASSERT_EQ(consumed.size(), 1U);
    EXPECT_EQ(consumed[0].base, made.anchor);
    EXPECT_EQ(of(must(session().baseline(1)), made.endpoint)[0].base, made.endpoint);
}

TEST_F(PlanningTest, WithoutRecurrentLayersAnyCommonBeginningIsABase) {
    build({.pages = 16, .host_pages = 12, .recurrent = false});
    const auto system = world().endpoint(world().make_tokens(128));
    const auto one = world().extend(system, world().make_tokens(100));
    const auto two = world().extend(system, world().make_tokens(70));
    const auto identity = ask(root(64 * 14));
    const auto target = degrade(identity, {evict(system), evict(one)});
    TargetFacts facts;
    must(session().assess_many({&target, 1}, facts));
    const auto recipes = of(facts.recipes, one);
    ASSERT_EQ(recipes.size(), 1U);
    EXPECT_EQ(recipes[0].base, two);
    EXPECT_EQ(recipes[0].base_frontier, 128);
    EXPECT_EQ(of(facts.recipes, system)[0].base, two);
    const auto cut = degrade(identity, {shorten(one, 192)});
    must(session().assess_many({&cut, 1}, facts));
    EXPECT_EQ(of(facts.recipes, one)[0].base, one);
    EXPECT_EQ(of(facts.recipes, one)[0].base_frontier, 192);
}

// The first base that has a run may be cut within it: whoever has more of it is another way, unless it costs as much and
// gives less.
TEST_F(PlanningTest, ACutBaseHidesNoDeeperOne) {
    build({.pages = 16, .host_pages = 12, .recurrent = false});
    const auto system = world().endpoint(world().make_tokens(128));
    const auto one = world().extend(system, world().make_tokens(100));
    const auto two = world().extend(system, world().make_tokens(70));
    const auto identity = ask(root(64 * 14));
    const auto cut = degrade(identity, {shorten(system, 64), evict(one)});
    const auto moved = degrade(identity, {shorten(system, 64), evict(one), pages_to_host(two)});
    TargetFacts facts;
    must(session().assess_many({&cut, 1}, facts));
    const auto ready = of(facts.recipes, one);
    ASSERT_EQ(ready.size(), 1U);
    EXPECT_EQ(ready[0].base, two);
    EXPECT_EQ(ready[0].base_frontier, 128);
    must(session().assess_many({&moved, 1}, facts));
    const auto both = of(facts.recipes, one);
    ASSERT_EQ(both.size(), 2U);
    EXPECT_EQ(both[0].base, two);
    EXPECT_EQ(both[0].base_frontier, 128);
    EXPECT_LT(0, both[0].to_device.bytes);
    EXPECT_EQ(both[1].base, system);
    EXPECT_EQ(both[1].base_frontier, 64);
    EXPECT_EQ(both[1].to_device, CopyWork{});
}

TEST_F(PlanningTest, OfTwoBasesAtOneFrontierTheCheaperOneIsNamed) {
    build({.pages = 16, .checkpoint_slots = 4, .host_pages = 12});
    const auto made = make_lineage(world());
    commit(degrade(ask(NoPublication{}), {step(DegradationKind::kImageToHost, made.anchor)}));
    const auto fork = must(open_from(state(), {made.anchor}, {.tokens = 64}));
    world().settle();
    const auto twin = must(state().owners.find(must(finish(state(), fork, {}))))->checkpoints.back();
    const auto target = degrade(ask(root(64)), {remove(made.endpoint)});
    TargetFacts facts;
    must(session().assess_many({&target, 1}, facts));
    const auto recipes = of(facts.recipes, made.endpoint);
    ASSERT_EQ(recipes.size(), 1U);
    EXPECT_EQ(recipes[0].base, twin);
    EXPECT_EQ(recipes[0].to_device, CopyWork{});
    // The anchor itself would have its image restored: its twin costs nothing.
    const auto anchor = of(must(session().baseline(0)), made.anchor);
    ASSERT_EQ(anchor.size(), 1U);
    EXPECT_EQ(anchor[0].base, twin);
}

// Nothing is done to it, but one of its ways back is gone.
TEST_F(PlanningTest, WhoLosesABaseHasItsRecoveriesTold) {
    build({.pages = 16, .host_pages = 12, .recurrent = false});
    const auto system = world().endpoint(world().make_tokens(128));
    const auto extended = world().extend(system, world().make_tokens(100));
    commit(degrade(ask(NoPublication{}), {pages_to_host(extended, 2)}));
    const auto target = degrade(ask(NoPublication{}), {evict(system)});
    const auto before = of(must(session().baseline(0)), extended);
    ASSERT_EQ(before.size(), 2U);
    EXPECT_EQ(before[0].base, extended);
    EXPECT_EQ(before[1].base, system);
    TargetFacts facts;
    must(session().assess_many({&target, 1}, facts));
    const auto after = of(facts.recipes, extended);
    ASSERT_EQ(after.size(), 2U);
    EXPECT_EQ(after[0].base, extended);
    EXPECT_EQ(after[1].base, CheckpointHandle{});
}

// Its owner may not be touched, and so it is outside: but what the source restores it has as well.
TEST_F(PlanningTest, ABaseOutsideHasThePagesThatTheSourceRestores) {
    build({.pages = 16, .checkpoint_slots = 6, .host_pages = 16});
    const auto made = make_lineage(world());
    const auto other = world().extend(made.anchor, world().make_tokens(100));
    commit(degrade(ask(NoPublication{}),
                   {pages_to_host(made.anchor), pages_to_host(made.endpoint), pages_to_host(other),
                    step(DegradationKind::kImageToHost, made.anchor), step(DegradationKind::kImageToHost, other)}));
    const Tokens prompt = ContextWorld::joined(world().tokens_of(made.endpoint), world().make_tokens(1));
    const auto found = candidates(prompt, {{made.endpoint}});
    const std::vector options{root(64), admission(found[1], 256)};
    must(session().open(options, std::vector{world().owner_of(made.anchor)}));
    const auto before = of(must(session().baseline(0)), other);
    const auto after = of(must(session().baseline(1)), other);
    ASSERT_EQ(before.size(), 3U);
    ASSERT_EQ(after.size(), 3U);
    EXPECT_EQ(before[1].base, made.anchor);
    EXPECT_EQ(after[1].base, made.anchor);
    EXPECT_EQ(before[1].to_device.operations, 2) << "page and image";
    EXPECT_EQ(after[1].to_device.operations, 1) << "the source has brought the page back";
}

}  // namespace
}  // namespace ninfer
