// What a session offers, refuses and knows.

#include "tests/cpp/program/planning_fixture.h"

namespace ninfer {
namespace {

using testing_support::ContextWorld;
using testing_support::PlanningTest;
using testing_support::Tokens;

TEST_F(PlanningTest, WhatNeverFitsIsPermanentlyInfeasible) {
    build({.pages = 8, .max_context = 1000});
    expect_status(assess(ask(root(64 * 8))), TargetStatus::kReady);
    expect_status(assess(ask(root(64 * 8 + 1))), TargetStatus::kPermanentlyInfeasible, RefusalKind::kNoPages);
    expect_status(assess(ask(root(1001))), TargetStatus::kPermanentlyInfeasible, RefusalKind::kOverContext);
    EXPECT_TRUE(must(session().degradations(must(session().identity(0)))).empty());
    const auto active = world().open(64 * 5);
    ask(root(64 * 8));
    expect_status(assess(must(session().maximal(0))), TargetStatus::kTemporarilyBlocked, RefusalKind::kNoPages);
    close(active);
}

TEST_F(PlanningTest, TargetsBelongToOneOpening) {
    build({});
    const Publication option = root(64);
    const auto first = ask(option);
    EXPECT_EQ(must(session().identity(0)), first);
    const auto second = ask(option);
    EXPECT_NE(second, first);
    const auto stale = RefusalKind::kStaleHandle;
    expect_refused([&] { return session().assess(first); }, stale);
    expect_refused([&] { return session().seal(first); }, stale);
    expect_refused([&] { return session().degrade(first, {}); }, stale);
    expect_refused([&] { return session().identity(1); }, stale);
    expect_refused([&] { return session().identity(-1); }, stale);
    expect_refused([&] { return session().assess(TargetId{second.value + 1}); }, stale);
    const std::vector<Publication> many(34, option);
    expect_refused([&] { return session().open(many, {}); }, RefusalKind::kBatchSize);
    must(session().open(std::span(many).first(33), {}));
    const auto endpoint = world().endpoint(world().make_tokens(10));
    expect_refused([&] { return session().identity(0); }, RefusalKind::kStaleRevision);
    AdmissionCandidate gone{.source = endpoint, .frontier = 10, .prompt_tokens = 20};
    must(delete_checkpoint(state(), endpoint));
    const auto publication = admission(gone, 20);
    expect_refused([&] { return session().open({&publication, 1}, {}); }, stale);
    expect_refused([&] { return session().identity(0); }, RefusalKind::kStaleHandle);
}

TEST_F(PlanningTest, StepsLeadDownAndTouchNobodyElse) {
    build({.pages = 16, .checkpoint_slots = 4});
    const auto source = world().endpoint(world().make_tokens(100));
    const auto idle = world().endpoint(world().make_tokens(300));
    const auto kept = world().endpoint(world().make_tokens(64));
    const auto sequence = world().open(128);
    world().compute(sequence, world().make_tokens(64));
    const auto own = must(capture(state(), sequence, {}));
    const Tokens prompt = ContextWorld::joined(world().tokens_of(source), world().make_tokens(1));
    const auto found = candidates(prompt, {{source}});
    const auto identity = ask(admission(found.back(), 128), {world().owner_of(kept)});
    const auto refuse = [&](TargetId target, const Degradation& step, RefusalKind kind) {
        expect_refused([&] { return session().degrade(target, {&step, 1}); }, kind);
    };
    for (const CheckpointHandle untouchable : {source, kept, own}) {
        refuse(identity, remove(untouchable), RefusalKind::kStaleHandle);
        refuse(identity, evict(untouchable), RefusalKind::kStaleHandle);
        refuse(identity, pages_to_host(untouchable), RefusalKind::kStaleHandle);
    }
    const auto down = degrade(identity, {pages_to_host(idle, 2)});
    EXPECT_EQ(down, degrade(identity, {pages_to_host(idle, 4), pages_to_host(idle, 2)}));
    const auto up = RefusalKind::kBackwards;
    refuse(down, pages_to_host(idle, 2), up);
    refuse(down, pages_to_host(idle, 3), up);
    refuse(down, pages_to_host(idle, -1), up);
    refuse(down, step(DegradationKind::kDropHostPages, idle), up);
    refuse(down, step(DegradationKind::kDropHostImage, idle), up);
    refuse(down, shorten(idle, 64), up);  // it has recurrent layers
    const auto without_image = degrade(down, {step(DegradationKind::kImageToHost, idle)});
    refuse(without_image, step(DegradationKind::kImageToHost, idle), up);
    refuse(without_image, step(DegradationKind::kDropHostImage, idle), up);
    const auto gone = degrade(down, {remove(idle)});
    EXPECT_EQ(gone, degrade(identity, {evict(idle)}));
    refuse(gone, remove(idle), up);
    refuse(gone, pages_to_host(idle), up);
    // A protected owner is not taken over either.
    const auto longer = ContextWorld::joined(world().tokens_of(kept), world().make_tokens(1));
    const auto consume = admission(candidates(longer, {{kept, SourceUse::kConsume}}).back(), 128);
    const auto protected_owner = world().owner_of(kept);
    expect_refused([&] { return session().open({&consume, 1}, {&protected_owner, 1}); }, RefusalKind::kProtected);
    const auto capturing = ContextWorld::joined(world().tokens_of(own), world().make_tokens(1));
    EXPECT_EQ(candidates(capturing, {{own}, {own, SourceUse::kConsume}}).size(), 2U);
    close(sequence);
}

TEST_F(PlanningTest, AProtectedSourceOfAnotherOptionStays) {
    build({.pages = 10, .checkpoint_slots = 4});
    const auto kept = world().endpoint(world().make_tokens(130));
    const auto idle = world().endpoint(world().make_tokens(130));
    const Tokens prompt = ContextWorld::joined(world().tokens_of(kept), world().make_tokens(300));
    const auto owner = world().owner_of(kept);
    std::vector<Publication> options;
    for (const AdmissionCandidate& candidate : candidates(prompt, {{kept}}))
        options.emplace_back(admission(candidate, std::ssize(prompt)));
    must(session().open(options, {&owner, 1}));
    for (const std::int64_t option : {0, 1}) {
        const auto assessed = assess(must(session().maximal(option)));
        EXPECT_TRUE(assessed.feasible());
        EXPECT_EQ(assessed.checkpoints_removed, 1) << "of option " << option;
    }
    EXPECT_EQ(commit(must(session().maximal(0))).removed, std::vector{idle});
}

TEST_F(PlanningTest, StepsSayWhatTheyCanGiveAtMost) {
    build({.pages = 10, .checkpoint_slots = 2, .host_pages = 12});
    const auto idle = world().endpoint(world().make_tokens(256));
    must(start_copy(state(), idle, Tier::kHost));
    world().settle();
    // Its last two pages and its image are on Device too, the others on Host as well: nothing is copied.
    const auto other = world().endpoint(world().make_tokens(256));
    const auto identity = ask(root(64 * 5));  // lacks 3
    std::map<std::pair<std::uint64_t, std::int64_t>, Degradation> moves;
    for (const Degradation& step : must(session().degradations(identity)))
        if (step.kind == DegradationKind::kPagesToHost) moves[{step.checkpoint.value, step.device_pages}] = step;
    ASSERT_EQ(moves.size(), 4U);
    for (const auto& [key, step] : moves) {
        const auto leaving = 4 - step.device_pages;
        const std::int64_t copied = step.checkpoint == other ? leaving : 0;
        EXPECT_EQ(step.relief.device_pages, leaving);
        EXPECT_EQ(step.relief.host_blocks, -copied);
        EXPECT_EQ(step.copied_bytes, copied * static_cast<std::int64_t>(ContextWorld::kPageBytes));
        const auto before = assess(identity);
        const auto after = assess(degrade(identity, {step}));
        EXPECT_EQ(before.residual.device_pages - after.residual.device_pages,
                  std::min<std::int64_t>(leaving, before.residual.device_pages));
        EXPECT_EQ(after.to_host.operations, copied);
    }
    EXPECT_TRUE(moves.contains({idle.value, 1}));
    EXPECT_TRUE(moves.contains({idle.value, 0}));
}

TEST_F(PlanningTest, StepsConcernOnlyWhatIsLacking) {
    build({.pages = 12, .checkpoint_slots = 2, .host_pages = 20});
    const auto without_pages = world().endpoint(world().make_tokens(256));
    commit(degrade(ask(NoPublication{}), {pages_to_host(without_pages)}));
    const auto without_image = world().endpoint(world().make_tokens(256));
    commit(degrade(ask(NoPublication{}), {step(DegradationKind::kImageToHost, without_image)}));
    const auto with_both = world().endpoint(world().make_tokens(64));
    std::set<DegradationKind> kinds;
    const auto listed = [&](TargetId target) {
        std::set<std::uint64_t> owners;
        kinds.clear();
        for (const Degradation& step : must(session().degradations(target))) {
            owners.insert(step.owner.value);
            kinds.insert(step.kind);
        }
        return owners;
    };
    const auto owners = [&](CheckpointHandle one, CheckpointHandle other) {
        return std::set{world().owner_of(one).value, world().owner_of(other).value};
    };
    EXPECT_EQ(listed(ask(root(64 * 8))), owners(without_image, with_both)) << "pages are lacking";
    EXPECT_EQ(kinds, (std::set{DegradationKind::kPagesToHost, DegradationKind::kEvict}));
    const auto sequence = world().open(64);
    world().compute(sequence, world().make_tokens(64));
    const auto captures = ask(CapturePublication{sequence, {}});
    EXPECT_EQ(assess(captures).residual.image_slots_checkpoint, 1);
    EXPECT_EQ(listed(captures), owners(without_pages, with_both)) << "a slot is lacking";
    EXPECT_EQ(kinds, (std::set{DegradationKind::kImageToHost, DegradationKind::kEvict}));
    close(sequence);
}

TEST_F(PlanningTest, CutsAreListedDownToOnePage) {
    build({.pages = 4, .host_pages = 0, .recurrent = false});
    const auto idle = world().endpoint(world().make_tokens(100));
    std::vector<std::int64_t> frontiers;
    for (const Degradation& step : must(session().degradations(ask(root(64 * 3)))))
        if (step.checkpoint == idle) frontiers.push_back(step.frontier);
    EXPECT_EQ(frontiers, std::vector<std::int64_t>{64});
}

TEST_F(PlanningTest, TheArenaIsBoundedButIdentityAndMaximalAlwaysHaveAPlace) {
    build({.pages = 300, .checkpoint_slots = 0, .host_pages = 300, .recurrent = false, .max_context = 64 * 300});
    const auto idle = world().endpoint(world().make_tokens(64 * 290));
    const auto identity = ask(root(64 * 300));
    for (std::int64_t i = 0; i < PlanningSession::kMaxTargets; ++i) degrade(identity, {pages_to_host(idle, i)});
    degrade(identity, {pages_to_host(idle, 0)});  // a known one
    const auto one_more = pages_to_host(idle, PlanningSession::kMaxTargets);
    expect_refused([&] { return session().degrade(identity, {&one_more, 1}); }, RefusalKind::kNoTargets);
    EXPECT_TRUE(must(session().successors(identity)).size() < must(session().degradations(identity)).size());
    expect_status(assess(must(session().maximal(0))), TargetStatus::kReady);
    EXPECT_EQ(must(session().identity(0)), identity);
}

TEST_F(PlanningTest, SuccessorsLeadFromTheDeficitToATargetThatFits) {
    build({.pages = 12, .checkpoint_slots = 4, .host_pages = 6});
    for (int i = 0; i < 4; ++i) world().endpoint(world().make_tokens(150));  // 12 pages
    std::vector<TargetId> open{ask(root(64 * 8))};
    std::set<std::uint64_t> seen;
    std::int64_t feasible = 0;
    for (std::size_t i = 0; i < open.size(); ++i) {
        if (!seen.insert(open[i].value).second) continue;
        const auto assessed = assess(open[i]);
        feasible += assessed.feasible() ? 1 : 0;
        if (assessed.feasible()) {
            EXPECT_TRUE(must(session().degradations(open[i])).empty());
            continue;
        }
        EXPECT_TRUE(assessed.is_short_of_cache());
        for (const TargetId next : must(session().successors(open[i]))) open.push_back(next);
    }
    EXPECT_LT(10, feasible);
    EXPECT_LE(std::ssize(seen), PlanningSession::kMaxTargets + 1);
}

// Two checkpoints of one owner lie on Host alone, and yet each keeps the page in which the consumed source ends: they cost
// the page of its copy.
TEST_F(PlanningTest, WhoOnlyKeepsATailFromBeingContinuedIsListed) {
    build({.pages = 6, .host_pages = 16, .recurrent = false});
    const auto sequence = world().open(320, 1);
    world().compute(sequence, world().make_tokens(256));
    const auto first = must(capture(state(), sequence, {.own = true}));
    const auto last = world().endpoint_of(sequence, world().make_tokens(64));
    const auto longer = world().extend(first, world().make_tokens(10));
    ask(NoPublication{});
    const auto cut = commit(degrade(must(session().identity(0)), {shorten(longer, 100)}));
    const auto source = cut.shortened.front().after;
    must(start_copy(state(), last, Tier::kHost));
    world().settle();
    must(drop(state(), last, Tier::kDevice));  // with what the others share: everything
    const auto other = world().open(64 * 4);   // leaves two pages, as many as the source has
    const auto target = ask_source(source, SourceUse::kConsume, 10);
    ASSERT_EQ(assess(target).residual, ResourceAxes{.device_pages = 1});
    std::map<DegradationKind, std::int64_t> listed;
    for (const Degradation& step : must(session().degradations(target))) {
        EXPECT_EQ(step.owner, world().owner_of(first));
        const bool keeps_tail = step.kind == DegradationKind::kShorten && step.frontier > 64;
        const std::int64_t most = step.kind == DegradationKind::kEvict ? 2 : 1;  // either of the two keeps it
        EXPECT_EQ(step.relief.device_pages, keeps_tail ? 0 : most);
        ++listed[step.kind];
    }
    EXPECT_EQ(listed[DegradationKind::kDelete], 2);
    EXPECT_EQ(listed[DegradationKind::kEvict], 1);
    EXPECT_EQ(listed[DegradationKind::kPagesToHost], 0);
    const auto one_left = degrade(target, {remove(first)});
    EXPECT_EQ(assess(one_left).residual.device_pages, 1);
    EXPECT_FALSE(must(session().degradations(one_left)).empty());
    const auto begun = commit(degrade(one_left, {shorten(last, 64)})).sequence;
    close(begun);
    close(other);
}

// Its pages and its image stay on Device, where the new sequence reads them.
TEST_F(PlanningTest, TheSourceGivesUpWhatItHasTwice) {
    for (const auto kind : {DegradationKind::kDropHostPages, DegradationKind::kDropHostImage})
        for (const auto use : {SourceUse::kRetain, SourceUse::kConsume}) {
            build({.pages = 9, .host_pages = 6});
            const auto source = world().endpoint(world().make_tokens(256));
            must(start_copy(state(), source, Tier::kHost));
            world().settle();
            ASSERT_EQ(world().used().host_blocks, 6) << "Host is full";
            const auto other = world().endpoint(world().make_tokens(256));
            const auto short_of_host = degrade(ask_source(source, use, 10, 64), {pages_to_host(other, 2)});
            EXPECT_EQ(assess(short_of_host).residual.host_blocks, 2);
            const auto listed = must(session().degradations(short_of_host));
            const auto found = std::ranges::find_if(
                listed, [&](const Degradation& one) { return one.kind == kind && one.checkpoint == source; });
            ASSERT_NE(found, listed.end()) << to_string(kind);
            const auto result = commit(degrade(short_of_host, {*found}));
            EXPECT_EQ(world().is_there(source), use == SourceUse::kRetain);
            world().compute(result.sequence, world().make_tokens(10));
            close(result.sequence);
        }
}

TEST_F(PlanningTest, TheSourceGivesUpNothingElse) {
    build({.pages = 9, .host_pages = 6});
    const auto source = world().endpoint(world().make_tokens(256));
    must(start_copy(state(), source, Tier::kHost));
    world().settle();
    const auto target = ask_source(source, SourceUse::kRetain, 10);
    const Degradation steps[] = {evict(source), remove(source), pages_to_host(source),
                                 step(DegradationKind::kImageToHost, source)};
    for (const Degradation& one : steps)
        expect_refused([&] { return session().degrade(target, {&one, 1}); }, RefusalKind::kStaleHandle);
}

}  // namespace
}  // namespace ninfer
