// Admissions through planning sessions: every candidate, with and without pressure, and what each leaves behind.

#include "tests/cpp/program/planning_fixture.h"

namespace ninfer {
namespace {

using testing_support::ContextWorld;
using testing_support::PlanningTest;
using testing_support::Tokens;

TEST_F(PlanningTest, RootIsReadyWhereThereIsRoom) {
    build({});
    const auto identity = ask(root(200));
    const auto assessed = assess(identity);
    expect_status(assessed, TargetStatus::kReady);
    EXPECT_EQ(assessed.peak.device_pages, 4);
    EXPECT_EQ(assessed.computed_tokens, 200);
    const auto result = commit(identity);
    world().compute(result.sequence, world().make_tokens(200));
    close(result.sequence);
    EXPECT_EQ(world().used(), ResourceAxes{});
}

TEST_F(PlanningTest, CandidatesAreExactAndLeaveATokenToCompute) {
    build({.checkpoint_slots = 8});
    const Tokens text = world().make_tokens(100);
    const auto exact = world().endpoint(text);
    auto other = text;
    other[50] ^= 1;
    const auto different = world().endpoint(other);
    const Tokens longer = ContextWorld::joined(text, world().make_tokens(5));
    const auto found = candidates(longer, {{different}, {exact}, {exact, SourceUse::kConsume}});
    ASSERT_EQ(found.size(), 3U);
    EXPECT_TRUE(found[0].is_root());
    EXPECT_EQ(found[1].source, exact);
    EXPECT_EQ(found[1].frontier, 100);
    EXPECT_FALSE(found[1].truncated);
    EXPECT_EQ(found[2].use, SourceUse::kConsume);
    // The whole prompt is no start: there would be nothing to compute.
    EXPECT_EQ(candidates(text, {{exact}}).size(), 1U);
    const IdentityHeader salted{.salt = "other", .mode = {}, .rope_delta = 0};
    EXPECT_EQ(must(verify_candidates(state(), {&salted, longer, {}}, std::array{CandidateSource{exact}})).size(), 1U);
}

TEST_F(PlanningTest, WithoutRecurrentLayersEveryCommonBeginningIsACandidate) {
    build({.recurrent = false});
    const Tokens text = world().make_tokens(200);
    const auto endpoint = world().endpoint(text);
    auto edited = text;
    edited[150] ^= 1;
    const auto found = candidates(edited, {{endpoint}, {endpoint, SourceUse::kContinue}});
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[1].frontier, 150);
    EXPECT_TRUE(found[1].truncated);
    EXPECT_EQ(found[2].use, SourceUse::kConsume);
    EXPECT_EQ(candidates(text, {{endpoint}})[1].frontier, 199);
    for (const std::size_t option : {1U, 2U}) {
        const auto target = ask(admission(found[option], 260));
        const auto assessed = assess(target);
        expect_status(assessed, TargetStatus::kNeedsTransfer);  // the tail is copied
        EXPECT_EQ(assessed.within_device.operations, 1);
        const auto result = commit(target);
        EXPECT_EQ(world().tokens_of(result.sequence), ContextWorld::first_of(text, 150));
        EXPECT_EQ(world().is_there(endpoint), option == 1U);
        world().compute(result.sequence, world().make_tokens(110));
        world().expect_all_bytes();
        close(result.sequence);
    }
    EXPECT_EQ(world().used(), ResourceAxes{});
}

TEST_F(PlanningTest, ARetainedSourceIsForkedAndStays) {
    build({});
    const auto endpoint = world().endpoint(world().make_tokens(128));
    const auto target = ask_source(endpoint, SourceUse::kRetain, 20);
    const auto assessed = assess(target);
    expect_status(assessed, TargetStatus::kReady);
    EXPECT_EQ(assessed.kv, KvActivation::kFork);
    EXPECT_EQ(assessed.image, ImageActivation::kFork);
    EXPECT_EQ(assessed.reused_tokens, 128);
    EXPECT_EQ(assessed.computed_tokens, 20);
    const auto result = commit(target);
    EXPECT_TRUE(world().is_there(endpoint));
    EXPECT_TRUE(result.removed.empty());
    ASSERT_EQ(result.placements.size(), 1U);
    world().compute(result.sequence, world().make_tokens(20));
    close(result.sequence);
}

TEST_F(PlanningTest, AConsumedSourceMovesAndItsOwnerGoesOn) {
    build({});
    const auto endpoint = world().endpoint(world().make_tokens(100));
    const auto owner = world().owner_of(endpoint);
    const auto target = ask_source(endpoint, SourceUse::kConsume, 20);
    const auto assessed = assess(target);
    expect_status(assessed, TargetStatus::kReady);
    EXPECT_EQ(assessed.kv, KvActivation::kMove);
    EXPECT_EQ(assessed.image, ImageActivation::kMove);
    const auto result = commit(target);
    EXPECT_EQ(result.removed, std::vector{endpoint});
    EXPECT_TRUE(result.owners_gone.empty());
    EXPECT_EQ(state().sequences.at(result.sequence).owner, owner);
    EXPECT_EQ(must(state().owners.find(owner))->role, OwnerRole::kActive);
    world().compute(result.sequence, world().make_tokens(20));
    close(result.sequence);
    EXPECT_EQ(world().used(), ResourceAxes{});
}

TEST_F(PlanningTest, AnAdmissionThatIsClosedAtOnceGivesItsOwnerBack) {
    for (const auto use : {SourceUse::kConsume, SourceUse::kContinue}) {
        build({});
        const Tokens text = world().make_tokens(100);
        const auto endpoint = world().endpoint(text);
        const auto owner = world().owner_of(endpoint);
        const auto result = commit(ask_source(endpoint, use, 20));
        EXPECT_EQ(must(state().owners.find(owner))->role, OwnerRole::kActive);
        close(result.sequence);
        world().settle();
        EXPECT_EQ(must(state().owners.find(owner))->role, OwnerRole::kPrivate);
        const auto back = must(state().owners.find(owner))->checkpoints.back();
        EXPECT_EQ(world().tokens_of(back), text);
        const auto again = commit(ask_source(back, use, 20));
        world().compute(again.sequence, world().make_tokens(20));
        world().expect_all_bytes();
        close(again.sequence);
        EXPECT_EQ(world().used(), ResourceAxes{});
    }
}

TEST_F(PlanningTest, ASharedOwnerIsOnlyRetained) {
    build({});
    const Tokens text = world().make_tokens(64);
    const auto sequence = world().open(100);
    world().compute(sequence, text);
    const auto shared = must(capture(state(), sequence, {.kind = CheckpointKind::kSharedStablePrefix, .own = false}));
    world().compute(sequence, world().make_tokens(1));
    close(sequence);
    const Tokens prompt = ContextWorld::joined(text, world().make_tokens(5));
    const auto found = candidates(prompt, {{shared}, {shared, SourceUse::kConsume}, {shared, SourceUse::kContinue}});
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[1].use, SourceUse::kRetain);
    for (const auto use : {SourceUse::kConsume, SourceUse::kContinue}) {
        auto taken = found[1];
        taken.use = use;
        const Publication publication = admission(taken, 100);
        const std::uint64_t before = state().fingerprint();
        const auto opened = session().open({&publication, 1}, {});
        ASSERT_FALSE(opened.has_value());
        EXPECT_EQ(opened.error().kind, RefusalKind::kShared);
        EXPECT_EQ(opened.error().wanted, 1);
        EXPECT_EQ(opened.error().found, 2);
        EXPECT_EQ(state().fingerprint(), before);
    }
    const auto result = commit(ask(admission(found[1], 100)));
    EXPECT_TRUE(world().is_there(shared));
    close(result.sequence);
}

// A conversation with an anchor at 64 and an endpoint at 100.
struct Conversation {
    OwnerHandle owner;
    CheckpointHandle anchor;
    CheckpointHandle endpoint;
};

Conversation converse(ContextWorld& world) {
    const auto sequence = world.open(100);
    world.compute(sequence, world.make_tokens(64));
    const auto anchor = ContextWorld::must(capture(world.state, sequence, {}));
    const auto endpoint = world.endpoint_of(sequence, world.make_tokens(36));
    return {world.owner_of(endpoint), anchor, endpoint};
}

TEST_F(PlanningTest, AContinuedAnchorStaysWhileWhatIsDeeperLeaves) {
    build({});
    const auto made = converse(world());
    const auto target = ask_source(made.anchor, SourceUse::kContinue, 10);
    EXPECT_EQ(assess(target).checkpoints_leaving, 1);
    const auto result = commit(target);
    EXPECT_EQ(result.removed, std::vector{made.endpoint});
    EXPECT_TRUE(world().is_there(made.anchor));
    EXPECT_EQ(world().owner_of(made.anchor), made.owner);
    EXPECT_EQ(state().sequences.at(result.sequence).owner, made.owner);
    world().compute(result.sequence, world().make_tokens(10));
    // The same through the direct opening.
    close(result.sequence);
    const auto again = converse(world());
    const auto direct = must(open_from(state(), {again.anchor, SourceUse::kContinue, {}}, {.tokens = 80}));
    EXPECT_TRUE(world().is_there(again.anchor));
    EXPECT_FALSE(world().is_there(again.endpoint));
    EXPECT_EQ(state().sequences.at(direct).owner, again.owner);
}

TEST_F(PlanningTest, AConsumedAnchorTakesWhatIsDeeperWithIt) {
    build({});
    const auto made = converse(world());
    const auto target = ask_source(made.anchor, SourceUse::kConsume, 10);
    const auto result = commit(target);
    EXPECT_EQ(std::set<std::uint64_t>({result.removed[0].value, result.removed[1].value}),
              std::set<std::uint64_t>({made.anchor.value, made.endpoint.value}));
    EXPECT_EQ(result.removed.size(), 2U);
    world().compute(result.sequence, world().make_tokens(1));
    close(result.sequence);
    EXPECT_EQ(world().used(), ResourceAxes{});
}

// --- pressure ---------------------------------------------------------------------------------------------------------

// The simulator found it: such a checkpoint has no image that a target could release.
TEST_F(PlanningTest, AnOwnerIsNotTakenOverWhileADeeperImageIsStillToCome) {
    build({});
    const auto sequence = world().open(200, 1);
    const Tokens text = world().make_tokens(100);
    world().compute(sequence, text);
    const auto anchor = must(capture(state(), sequence, {}));
    world().settle();
    world().compute(sequence, world().make_tokens(60));
    must(finish(state(), sequence, {.image_tier = Tier::kHost}));
    const Tokens prompt = ContextWorld::joined(text, world().make_tokens(5));
    const auto found = candidates(prompt, {{anchor, SourceUse::kConsume}, {anchor}});
    ASSERT_EQ(found.size(), 3U);
    const Publication consuming = admission(found[1], 120);
    const auto in_flight = RefusalKind::kCopyInFlight;
    expect_refused([&] { return session().open({&consuming, 1}, {}); }, in_flight);

    // Among others it is left out, and they can be planned.
    const std::vector<Publication> options = {admission(found[0], 120), consuming, admission(found[2], 120)};
    must(session().open(options, {}));
    EXPECT_FALSE(session().why_left_out(0) || session().why_left_out(2));
    ASSERT_TRUE(session().why_left_out(1));
    EXPECT_EQ(session().why_left_out(1)->kind, in_flight);
    expect_refused([&] { return session().identity(1); }, in_flight);
    expect_refused([&] { return session().maximal(1); }, in_flight);
    expect_refused([&] { return session().baseline(1); }, in_flight);
    for (const std::int64_t option : {0, 2}) {
        EXPECT_EQ(assess(must(session().identity(option))).residual, ResourceAxes{});
        EXPECT_EQ(assess(must(session().maximal(option))).residual, ResourceAxes{});
    }
    world().settle();
    const auto owner = world().owner_of(anchor);
    must(session().open(options, {&owner, 1}));
    EXPECT_EQ(session().why_left_out(1)->kind, RefusalKind::kProtected);  // nobody may take the owner over
    commit(must(session().identity(0)));
    commit(ask(consuming));
}

TEST_F(PlanningTest, PressureDemotesEvictsOrBoth) {
    build({.pages = 12, .checkpoint_slots = 4, .host_pages = 8});
    const auto first = world().endpoint(world().make_tokens(256));   // 4 pages
    const auto second = world().endpoint(world().make_tokens(256));  // 4 pages
    const auto identity = ask(root(64 * 9));                         // lacks 5
    const auto lacking = assess(identity);
    expect_status(lacking, TargetStatus::kTemporarilyBlocked, RefusalKind::kNoPages);
    EXPECT_EQ(lacking.residual.device_pages, 5);
    expect_refused([&] { return session().seal(identity); }, RefusalKind::kNoPages);

    const auto half = degrade(identity, {pages_to_host(first)});
    EXPECT_EQ(assess(half).residual.device_pages, 1);
    const auto both = degrade(half, {pages_to_host(second, 3)});
    const auto demoted = assess(both);
    expect_status(demoted, TargetStatus::kNeedsTransfer);
    EXPECT_EQ(demoted.to_host.operations, 5);
    EXPECT_EQ(demoted.checkpoints_moved, 2);
    const auto evicting = degrade(half, {evict(second)});
    EXPECT_EQ(assess(evicting).owners_evicted, 1);
    EXPECT_EQ(assess(evicting).checkpoints_removed, 1);
    expect_status(assess(degrade(identity, {evict(first), evict(second)})), TargetStatus::kReady);

    const auto result = commit(both);
    EXPECT_TRUE(result.removed.empty());
    ASSERT_EQ(result.placements.size(), 2U);
    EXPECT_EQ(result.placements[0].placement.pages_on_device, 0);
    EXPECT_EQ(result.placements[1].placement.pages_on_device, 3);
    world().compute(result.sequence, world().make_tokens(64 * 9));
    close(result.sequence);

    // And back from Host.
    const auto back = ask_source(first, SourceUse::kRetain, 10);
    const auto assessed = assess(back);
    EXPECT_EQ(assessed.to_device.operations, 4);
    expect_status(assessed, TargetStatus::kNeedsTransfer);
    const auto restored = commit(back);
    world().compute(restored.sequence, world().make_tokens(10));
}

TEST_F(PlanningTest, AnAliasAloneFreesNothingAndBothTogetherFreeItOnce) {
    build({.pages = 6, .checkpoint_slots = 4, .host_pages = 0});
    const auto base = world().endpoint(world().make_tokens(256));       // 4 pages
    const auto longer = world().extend(base, world().make_tokens(64));  // shares them, and one more
    EXPECT_EQ(world().used().device_pages, 5);
    const auto identity = ask(root(64 * 4));  // 1 free, lacks 3
    EXPECT_EQ(assess(identity).residual.device_pages, 3);
    const auto listed = must(session().degradations(identity));
    EXPECT_EQ(listed.size(), 2U) << "one eviction each, although that of the first frees nothing";
    const auto alone = degrade(identity, {evict(base)});
    EXPECT_EQ(assess(alone).residual.device_pages, 3);
    const auto other = degrade(identity, {evict(longer)});
    EXPECT_EQ(assess(other).residual.device_pages, 2);
    const auto together = degrade(alone, {evict(longer)});
    EXPECT_EQ(together, degrade(other, {evict(base)})) << "the same target by two ways";
    EXPECT_EQ(assess(together).residual.device_pages, 0);
    EXPECT_EQ(assess(together).used.back().device_pages, 4);
    const auto result = commit(together);
    EXPECT_EQ(result.owners_gone.size(), 2U);
    close(result.sequence);
}

TEST_F(PlanningTest, CoverageIsShortenedToAnotherCheckpoint) {
    build({.pages = 8, .host_pages = 2, .recurrent = false});
    const Tokens text = world().make_tokens(6 * 64 - 10);
    const auto endpoint = world().endpoint(text);
    const auto owner = world().owner_of(endpoint);
    const auto identity = ask(root(64 * 4));  // lacks 2
    bool listed = false;
    for (const Degradation& step : must(session().degradations(identity)))
        listed = listed || (step.kind == DegradationKind::kShorten && step.frontier == 256);
    EXPECT_TRUE(listed);
    const auto target = degrade(identity, {shorten(endpoint, 250)});
    expect_status(assess(target), TargetStatus::kReady);
    const auto result = commit(target);
    ASSERT_EQ(result.shortened.size(), 1U);
    EXPECT_EQ(result.shortened[0].before, endpoint);
    EXPECT_EQ(result.shortened[0].frontier, 250);
    EXPECT_FALSE(world().is_there(endpoint)) << "a published checkpoint never changes its frontier";
    const auto after = result.shortened[0].after;
    EXPECT_EQ(world().owner_of(after), owner);
    EXPECT_EQ(world().tokens_of(after), ContextWorld::first_of(text, 250));
    EXPECT_TRUE(result.removed.empty());
    EXPECT_TRUE(result.owners_gone.empty());
    close(result.sequence);
    EXPECT_EQ(candidates(text, {{after}}).back().frontier, 250);
}

TEST_F(PlanningTest, RedundantReplicasGoBeforeAnythingIsCopied) {
    build({.pages = 8, .checkpoint_slots = 2, .host_pages = 8});
    const auto both = world().endpoint(world().make_tokens(256));
    must(start_copy(state(), both, Tier::kHost));
    world().settle();
    const auto identity = ask(root(64 * 6));  // lacks 2
    const auto target = degrade(identity, {pages_to_host(both, 2)});
    const auto assessed = assess(target);
    expect_status(assessed, TargetStatus::kReady);
    EXPECT_EQ(assessed.to_host.operations, 0);
    const auto result = commit(target);
    EXPECT_EQ(result.placements[0].placement.pages_on_device, 2);
    EXPECT_EQ(result.placements[0].placement.pages_on_host, 4);
    close(result.sequence);

    // Host room for somebody else, from pages that are on Device too.
    const auto next = world().endpoint(world().make_tokens(300));
    const auto crowded = ask(root(64 * 4));
    const auto full = degrade(crowded, {pages_to_host(next)});
    EXPECT_EQ(assess(full).residual.host_blocks, 3);
    std::set<DegradationKind> kinds;
    for (const Degradation& step : must(session().degradations(full)))
        if (step.checkpoint == both) kinds.insert(step.kind);
    EXPECT_TRUE(kinds.contains(DegradationKind::kDropHostPages));
    EXPECT_TRUE(kinds.contains(DegradationKind::kDropHostImage));
    const auto dropped = degrade(full, {step(DegradationKind::kDropHostImage, both)});
    EXPECT_EQ(assess(dropped).residual.host_blocks, 1);
    commit(degrade(dropped, {step(DegradationKind::kDropHostPages, both)}));
}

TEST_F(PlanningTest, RootMaximalIsTheBoundedFallback) {
    build({.pages = 12, .checkpoint_slots = 4, .host_pages = 4});
    std::vector<CheckpointHandle> made;
    for (int i = 0; i < 4; ++i) made.push_back(world().endpoint(world().make_tokens(130)));
    const auto kept = world().owner_of(made[2]);
    // One of them is protected: its owner stays, and three pages with it.
    const auto blocked = ask(root(64 * 10), {kept});
    expect_status(assess(blocked), TargetStatus::kTemporarilyBlocked, RefusalKind::kNoPages);
    expect_status(assess(must(session().maximal(0))), TargetStatus::kTemporarilyBlocked, RefusalKind::kNoPages);
    ask(root(64 * 9), {kept});
    const auto maximal = must(session().maximal(0));
    EXPECT_EQ(assess(maximal).owners_evicted, 3);
    const auto result = commit(maximal);
    EXPECT_EQ(result.owners_gone.size(), 3U);
    EXPECT_TRUE(world().is_there(made[2]));
    close(result.sequence);

    ask(root(64 * 10));
    EXPECT_EQ(commit(must(session().maximal(0))).removed, std::vector{made[2]});
}

}  // namespace
}  // namespace ninfer
