// One program lives through hundreds of random planning problems: candidates of every use, captures and finishes, random
// ways down to a target that fits, carried out, cancelled or failed at random phases. After every phase all bytes are what
// their tokens say, and in the end everything is as assessed.

#include "tests/cpp/program/planning_fixture.h"

namespace ninfer {
namespace {

using testing_support::ContextWorld;
using testing_support::PlanningTest;
using testing_support::Tokens;

class PlanningRandomTest : public PlanningTest {
   protected:
    std::int64_t draw(std::int64_t bound) {
        return static_cast<std::int64_t>(world().random() % static_cast<std::uint64_t>(bound));
    }
    bool chance(std::int64_t one_in) { return draw(one_in) == 0; }
    std::vector<CheckpointHandle> all_checkpoints() const {
        std::vector<CheckpointHandle> handles;
        for (const std::uint64_t value : checkpoints()) handles.push_back({value});
        return handles;
    }

    // --- the question -------------------------------------------------------------------------------------------------
    std::vector<Publication> admissions() {
        std::vector<CandidateSource> sources;
        const auto all = all_checkpoints();
        Tokens prompt = world().make_tokens(1);
        if (!all.empty() && !chance(4)) {
            prompt = world().tokens_of(all[static_cast<std::size_t>(draw(std::ssize(all)))]);
            if (chance(3)) prompt.resize(static_cast<std::size_t>(1 + draw(std::ssize(prompt))));
        }
        prompt = ContextWorld::joined(prompt, world().make_tokens(1 + draw(100)));
        for (const CheckpointHandle checkpoint : all) sources.push_back({checkpoint, static_cast<SourceUse>(draw(3))});
        std::vector<Publication> options;
        const std::int64_t growth = draw(300);
        for (const AdmissionCandidate& candidate : candidates(prompt, sources))
            options.emplace_back(admission(candidate, std::ssize(prompt) + growth, draw(2)));
        return options;
    }
    std::vector<Publication> ends() {
        std::vector<Publication> options;
        for (const SequenceHandle sequence : sequences_)
            for (const Tier tier : {Tier::kDevice, Tier::kHost}) {
                options.emplace_back(CapturePublication{sequence, {CheckpointKind::kLongAnchor, tier, chance(2)}});
                options.emplace_back(FinishPublication{sequence, {CheckpointKind::kSessionEndpoint, tier}});
            }
        if (chance(3)) options.emplace_back(NoPublication{});
        return options;
    }
    std::vector<OwnerHandle> some_owners() {
        std::vector<OwnerHandle> owners;
        for (const CheckpointHandle checkpoint : all_checkpoints())
            if (chance(6)) owners.push_back(world().owner_of(checkpoint));
        return owners;
    }
    // Opens a session with one of them, if there is one among a few that can be asked for.
    bool open(const std::vector<Publication>& options) {
        for (int tries = 0; tries < 8 && !options.empty(); ++tries) {
            const auto option = static_cast<std::size_t>(draw(std::ssize(options)));
            if (session().open(std::span(options).subspan(option, 1), some_owners())) return true;
        }
        return false;
    }

    // --- the way down -------------------------------------------------------------------------------------------------
    std::optional<TargetId> find_target() {
        TargetId target = must(session().identity(0));
        for (int depth = 0; depth < 12; ++depth) {
            const auto assessed = assess(target);
            if (assessed.feasible() && !chance(4)) return target;
            const auto steps = must(session().degradations(target));
            if (steps.empty()) break;
            const Degradation step = steps[static_cast<std::size_t>(draw(std::ssize(steps)))];
            target = degrade(target, {step});
        }
        if (assess(target).feasible()) return target;
        const auto maximal = must(session().maximal(0));
        if (assess(maximal).feasible()) return maximal;
        return std::nullopt;
    }

    // --- carrying it out ----------------------------------------------------------------------------------------------
    ResourceResult disturb(TargetId target) {
        auto ended = must(start_transaction(state(), must(session().seal(target)), {}));
        while (!ended) {
            if (chance(6)) cancel_transaction(state());
            if (chance(4)) world().fail();
            ended = step_once();
        }
        return *ended;
    }
    void carry_out(TargetId target) {
        auto there = checkpoints();
        const ResourceResult result = chance(3) ? disturb(target) : commit(target);
        ++ends_[to_string(result.end)];
        ends_["removed"] += result.removed.empty() ? 0 : 1;
        ends_["shortened"] += result.shortened.empty() ? 0 : 1;
        ends_["opened"] += result.sequence != SequenceHandle{} ? 1 : 0;
        ends_["captured"] += result.captured != CheckpointHandle{} ? 1 : 0;
        ends_["finished"] += result.finished != OwnerHandle{} ? 1 : 0;
        for (const CheckpointHandle gone : result.removed) EXPECT_EQ(there.erase(gone.value), 1U);
        for (const ShortenedCheckpoint& shorter : result.shortened) {
            EXPECT_EQ(there.erase(shorter.before.value), 1U);
            there.insert(shorter.after.value);
        }
        if (result.captured != CheckpointHandle{}) there.insert(result.captured.value);
        if (result.finished != OwnerHandle{}) {
            std::erase_if(sequences_, [&](SequenceHandle handle) { return !state().sequences.find(handle); });
            there.insert(state().owners.find(result.finished).value()->checkpoints.back().value);
        }
        if (result.sequence != SequenceHandle{}) sequences_.push_back(result.sequence);
        EXPECT_EQ(checkpoints(), there) << "exactly what is named has changed";
        drop_failed(world().settle());
    }
    // Snapshots that fail later take their checkpoint with them; here they all arrive.
    static void drop_failed(const CopyProgress& progress) { EXPECT_TRUE(progress.removed.empty()); }

    void compute_some() {
        for (const SequenceHandle handle : sequences_) {
            const Sequence& sequence = state().sequences.at(handle);
            if (state().not_ready(sequence)) continue;
            const std::int64_t room = sequence.reserved - sequence.length;
            if (room > 0) world().compute(handle, world().make_tokens(1 + draw(room)));
        }
        for (std::size_t i = 0; i < sequences_.size();) {
            if (!chance(8)) {
                ++i;
                continue;
            }
            close(sequences_[i]);
            sequences_.erase(sequences_.begin() + static_cast<std::ptrdiff_t>(i));
        }
    }

    void live(int rounds) {
        for (int round = 0; round < rounds && !HasFailure(); ++round) {
            compute_some();
            world().settle();
            if (!open(chance(2) || sequences_.empty() ? admissions() : ends())) continue;
            if (const auto target = find_target())
                carry_out(*target);
            else
                ++ends_["blocked"];
        }
        for (const SequenceHandle sequence : sequences_) close(sequence);
        for (const CheckpointHandle checkpoint : all_checkpoints())
            if (world().is_there(checkpoint)) must(release_owner(state(), world().owner_of(checkpoint)));
        world().poll();
        EXPECT_EQ(world().used(), ResourceAxes{});
        for (const char* end : {"committed", "cancelled", "blocked", "removed", "opened", "captured", "finished"})
            EXPECT_LT(0, ends_[end]) << end;
    }

    std::vector<SequenceHandle> sequences_;
    std::map<std::string_view, int> ends_;  // what has happened, and how often
};

TEST_F(PlanningRandomTest, WithRecurrentLayers) {
    build({.pages = 20, .lanes = 3, .checkpoint_slots = 4, .host_pages = 24, .max_context = 64 * 18});
    live(3000);
}

TEST_F(PlanningRandomTest, WithoutRecurrentLayers) {
    build({.pages = 20, .lanes = 3, .host_pages = 16, .recurrent = false, .max_context = 64 * 18});
    live(3000);
    EXPECT_LT(0, ends_["shortened"]);
    EXPECT_LT(0, ends_["copy_failed"]);
}

TEST_F(PlanningRandomTest, WithoutHost) {
    build({.pages = 16, .lanes = 2, .checkpoint_slots = 2, .host_pages = 0, .max_context = 64 * 16});
    live(2000);
}

}  // namespace
}  // namespace ninfer
