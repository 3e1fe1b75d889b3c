#pragma once

// Planning problems over a small world: targets are assessed, sealed and carried out phase by phase, and what was assessed
// is compared with what has happened.

#include <algorithm>
#include <set>

#include "cpp/program/candidate_verification.h"
#include "tests/cpp/program/context_world.h"

namespace ninfer::testing_support {

class PlanningTest : public testing::Test {
   protected:
    using World = ContextWorld;

    void build(const ContextWorldSizes& sizes) {
        world_ = std::make_unique<World>(sizes, test_seed());
        session_ = std::make_unique<PlanningSession>(world_->state);
    }
    World& world() { return *world_; }
    ContextState& state() { return world_->state; }
    PlanningSession& session() { return *session_; }
    void TearDown() override {
        if (!world_) return;
        world_->expect_all_bytes();
        world_->engine->complete_all();
    }
    template <typename T>
    static T must(Result<T, Refusal> result) {
        return World::must(std::move(result));
    }

    // --- questions ----------------------------------------------------------------------------------------------------
    std::vector<AdmissionCandidate> candidates(const Tokens& prompt, const std::vector<CandidateSource>& sources) {
        const IdentityHeader header;
        return must(verify_candidates(state(), {&header, prompt, {}}, sources));
    }
    static Publication admission(const AdmissionCandidate& candidate, std::int64_t tokens, std::int64_t captures = 0) {
        return AdmissionPublication{candidate, {.tokens = tokens, .captures = captures}};
    }
    static Publication root(std::int64_t tokens) {
        AdmissionCandidate candidate;
        candidate.prompt_tokens = tokens;
        return admission(candidate, tokens);
    }
    // The identity target of the only option.
    TargetId ask(const Publication& publication, const std::vector<OwnerHandle>& protected_owners = {}) {
        must(session().open({&publication, 1}, protected_owners));
        return must(session().identity(0));
    }
    TargetId ask_source(CheckpointHandle source, SourceUse use, std::int64_t more, std::int64_t growth = 0) {
        const Tokens prompt = World::joined(world().tokens_of(source), world().make_tokens(more));
        const auto found = candidates(prompt, {{source, use}});
        EXPECT_EQ(found.size(), 2U);
        return ask(admission(found.back(), std::ssize(prompt) + growth));
    }
    TargetAssessment assess(TargetId target) {
        const std::uint64_t before = state().fingerprint();
        const auto assessed = must(session().assess(target));
        EXPECT_EQ(state().fingerprint(), before) << "an assessment changes something";
        return assessed;
    }
    TargetId degrade(TargetId target, const std::vector<Degradation>& steps) {
        return must(session().degrade(target, steps));
    }
    Degradation evict(CheckpointHandle of) { return {.kind = DegradationKind::kEvict, .owner = world().owner_of(of)}; }
    Degradation remove(CheckpointHandle checkpoint) {
        return {.kind = DegradationKind::kDelete, .checkpoint = checkpoint};
    }
    Degradation pages_to_host(CheckpointHandle checkpoint, std::int64_t device_pages = 0) {
        return {.kind = DegradationKind::kPagesToHost, .checkpoint = checkpoint, .device_pages = device_pages};
    }
    Degradation step(DegradationKind kind, CheckpointHandle checkpoint) {
        return {.kind = kind, .checkpoint = checkpoint};
    }
    Degradation shorten(CheckpointHandle checkpoint, std::int64_t frontier) {
        return {.kind = DegradationKind::kShorten, .checkpoint = checkpoint, .frontier = frontier};
    }

    // --- carrying out -------------------------------------------------------------------------------------------------
    // One phase; the copies that it waits for arrive first.
    std::optional<ResourceResult> step_once() {
        if (state().transaction->running->phase() == TransactionPhase::kCopiesInFlight) world().settle();
        auto result = advance_transaction(state());
        world().expect_all_bytes();
        return result;
    }
    // Carries the target out. Peaks, what is used in the end, and what is gone are as assessed.
    ResourceResult commit(TargetId target) {
        const TargetAssessment assessed = assess(target);
        EXPECT_TRUE(assessed.feasible()) << to_string(assessed.reason);
        const std::uint64_t revision = state().resource_revision;
        auto ended = must(start_transaction(state(), must(session().seal(target)), {}));
        EXPECT_EQ(ended.has_value(), assessed.status == TargetStatus::kReady);
        while (!ended) {
            EXPECT_EQ(state().resource_revision, revision) << "it moves in the middle of a transaction";
            ended = step_once();
        }
        world().expect_all_bytes();
        expect_as_assessed(*ended, assessed);
        EXPECT_EQ(state().resource_revision, revision + (ended->changed ? 1 : 0));
        EXPECT_EQ(ended->revision, state().resource_revision);
        return *ended;
    }
    void expect_as_assessed(const ResourceResult& result, const TargetAssessment& assessed) {
        EXPECT_EQ(to_string(result.end), "committed");
        EXPECT_EQ(result.peak, assessed.peak);
        const bool published_more = result.captured != CheckpointHandle{} || result.finished != OwnerHandle{};
        if (!published_more) {
            EXPECT_EQ(result.used, assessed.used.back());
        }
        EXPECT_EQ(result.used, world().used());
        const auto consumed =
            result.sequence != SequenceHandle{}
                ? std::ssize(result.removed) - assessed.checkpoints_removed - assessed.checkpoints_leaving
                : 0;
        EXPECT_LE(consumed, 1);
        EXPECT_LE(0, consumed);
        EXPECT_EQ(std::ssize(result.shortened), assessed.checkpoints_shortened);
        for (const CheckpointHandle gone : result.removed) EXPECT_FALSE(world().is_there(gone));
        for (const OwnerHandle gone : result.owners_gone) EXPECT_FALSE(state().owners.find(gone).has_value());
        for (const auto& [checkpoint, placement] : result.placements) expect_placement(checkpoint, placement);
    }
    void expect_placement(CheckpointHandle handle, const HoldingPlacement& placement) {
        const Checkpoint& checkpoint = *state().owners.find(handle).value();
        const SpaceFacts facts = must(state().stores.kv().facts(checkpoint.kv));
        EXPECT_EQ(placement.pages, facts.pages);
        EXPECT_EQ(placement.pages_on_device, facts.pages_on_device);
        EXPECT_EQ(placement.pages_on_host, facts.pages_on_host);
        if (!state().stores.has_images()) return;
        const StateImage& image = *state().stores.images().find(checkpoint.image).value();
        EXPECT_EQ(placement.image_on_device, image.on_device());
        EXPECT_EQ(placement.image_on_host, image.on_host());
    }
    // The checkpoints that were there and are not any more, or the other way round, are named.
    std::set<std::uint64_t> checkpoints() const {
        std::set<std::uint64_t> handles;
        world_->state.owners.for_each_checkpoint(
            [&](CheckpointHandle handle, const Checkpoint&) { handles.insert(handle.value); });
        return handles;
    }
    // The call is refused like this, and nothing at all has changed.
    template <typename Call>
    void expect_refused(Call&& call, RefusalKind kind) {
        const std::uint64_t before = state().fingerprint();
        const auto result = call();
        ASSERT_FALSE(result.has_value()) << "not refused; wanted " << to_string(kind);
        EXPECT_EQ(to_string(result.error().kind), to_string(kind)) << result.error().message();
        EXPECT_EQ(state().fingerprint(), before) << to_string(kind);
        state().check_invariants();
    }
    void expect_status(const TargetAssessment& assessed, TargetStatus status, RefusalKind reason = {}) {
        EXPECT_EQ(to_string(assessed.status), to_string(status)) << to_string(assessed.reason);
        if (assessed.feasible()) return;
        EXPECT_EQ(to_string(assessed.reason), to_string(reason));
    }
    void close(SequenceHandle sequence) { must(close_sequence(state(), sequence)); }

    SeedTrace trace_;
    std::unique_ptr<World> world_;
    std::unique_ptr<PlanningSession> session_;
};

}  // namespace ninfer::testing_support
