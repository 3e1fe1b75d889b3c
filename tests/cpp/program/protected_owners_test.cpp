// Owners that nobody may touch, for a session and, whatever that was told, for the start of its plan.

#include "tests/cpp/program/crowd_fixture.h"

namespace ninfer {
namespace {

using ProtectedOwnersTest = testing_support::CrowdTest;

// A plan that was sealed before somebody got their protection is not carried out against it; whoever is in the way is named.
TEST_F(ProtectedOwnersTest, WhoIsProtectedMeanwhileIsNotTouched) {
    const auto expect_named = [&](ContextPlan plan, CheckpointHandle touched) {
        const OwnerHandle owner = world().owner_of(touched);
        const std::uint64_t before = state().fingerprint();
        const auto started = start_transaction(state(), std::move(plan), {&owner, 1});
        ASSERT_FALSE(started.has_value());
        EXPECT_EQ(to_string(started.error().kind), "protected");
        EXPECT_EQ(static_cast<std::uint64_t>(started.error().wanted), owner.value);
        EXPECT_EQ(static_cast<std::uint64_t>(started.error().found), touched.value);
        EXPECT_EQ(state().fingerprint(), before);
    };
    for (const auto use : {SourceUse::kRetain, SourceUse::kContinue, SourceUse::kConsume}) {
        use == SourceUse::kRetain ? build_crowd() : build_conversation();
        for (const CheckpointHandle touched : {demoted_, evicted_}) expect_named(seal_all(use), touched);
        if (use == SourceUse::kRetain) {
            const OwnerHandle reader = world().owner_of(source_);  // it is only read
            ASSERT_TRUE(start_transaction(state(), seal_all(use), {&reader, 1}).has_value());
            EXPECT_EQ(to_string(until_ended().end), "committed");
        } else {
            expect_named(seal_all(use), source_);
        }
    }
}

TEST_F(ProtectedOwnersTest, NoStepDownTouchesWhoIsProtectedMeanwhile) {
    for (const auto kind : {DegradationKind::kDelete, DegradationKind::kPagesToHost, DegradationKind::kShorten,
                            DegradationKind::kDropHostPages}) {
        build({.pages = 12, .checkpoint_slots = 4, .host_pages = 12, .recurrent = false});
        const auto touched = world().endpoint(world().make_tokens(150));
        must(start_copy(state(), touched, Tier::kHost));
        world().settle();
        const auto other = world().endpoint(world().make_tokens(64));
        const auto seal = [&] {
            const auto target = ask(NoPublication{});
            return must(session().seal(degrade(target, {{.kind = kind, .checkpoint = touched, .frontier = 64}})));
        };
        const std::vector owners = {world().owner_of(other), world().owner_of(touched)};
        expect_refused([&] { return start_transaction(state(), seal(), owners); }, RefusalKind::kProtected);
        ASSERT_TRUE(start_transaction(state(), seal(), {owners.data(), 1}).has_value());
    }
}

// It is read by the plan, and loses a replica.
TEST_F(ProtectedOwnersTest, AProtectedSourceKeepsItsHostReplicas) {
    build({.pages = 12, .host_pages = 8});
    const auto source = world().endpoint(world().make_tokens(128));
    must(start_copy(state(), source, Tier::kHost));
    world().settle();
    const OwnerHandle owner = world().owner_of(source);
    const auto drop_pages = step(DegradationKind::kDropHostPages, source);
    ContextPlan plan = must(session().seal(degrade(ask_source(source, SourceUse::kRetain, 10), {drop_pages})));
    expect_refused([&] { return start_transaction(state(), std::move(plan), {&owner, 1}); }, RefusalKind::kProtected);
    const auto found = candidates(World::joined(world().tokens_of(source), world().make_tokens(10)), {{source}});
    const auto target = ask(admission(found.back(), 64 * 3), {owner});
    expect_refused([&] { return session().degrade(target, {&drop_pages, 1}); }, RefusalKind::kStaleHandle);
}

TEST_F(ProtectedOwnersTest, WhoIsNotThereCannotBeProtected) {
    build_crowd();
    const OwnerHandle gone = world().owner_of(evicted_);
    must(release_owner(state(), gone));
    const Publication publication = root(64);
    expect_refused([&] { return session().open({&publication, 1}, {&gone, 1}); }, RefusalKind::kStaleHandle);
    ContextPlan plan = must(session().seal(ask(publication)));
    expect_refused([&] { return start_transaction(state(), std::move(plan), {&gone, 1}); }, RefusalKind::kStaleHandle);
}

}  // namespace
}  // namespace ninfer
