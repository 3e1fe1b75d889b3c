// A program under random operations with copies that take their time, end in any order and fail: after every step all
// invariants hold, a refusal has changed nothing, and every token that is computed has the bits of an undisturbed run.

#include <map>

#include "tests/cpp/program/checkpoint_fixture.h"
#include "tests/sim/faulty_copy_engine.h"

namespace ninfer {
namespace {

using testing_support::CheckpointTest;
using testing_support::test_seed;

class ProgramRandomTest : public CheckpointTest {
   protected:
    using Faults = sim::FaultyCopyEngine::Faults;
    static constexpr int kSteps = 400;
    // Far below the least that any run has shown: 106, 39 and 9.
    static constexpr int kFewestRefused = 30;
    static constexpr int kFewestDone = 10;
    static constexpr int kFewestOutcomes = 4;
    static constexpr std::int64_t kLongest = 220;  // tokens

    void run(bool recurrent, Faults faults) {
        load_with(recurrent, KvStorage::kF32, std::make_unique<sim::FaultyCopyEngine>(test_seed(), faults));
        for (int step = 0; step < kSteps && !HasFatalFailure(); ++step) {
            act();
            program_->check_invariants();
        }
        end();
    }

    std::int64_t draw(std::int64_t below) {
        return static_cast<std::int64_t>(engine_random_() % static_cast<std::uint64_t>(below));
    }
    Tier any_tier() { return draw(2) == 0 ? Tier::kDevice : Tier::kHost; }

    void act() {
        switch (draw(20)) {
            case 0:
                return open_a_root();
            case 1:
            case 2:
                return open_from_a_checkpoint();
            case 3:
            case 4:
            case 5:
                return compute_some();
            case 6:
            case 7:
                return capture_one();
            case 8:
                return finish_one();
            case 9:
                return close_one();
            case 10:
                return move_one();
            case 11:
                return drop_one();
            case 12:
                return delete_one();
            default:
                return poll_some();
        }
    }

    // What the call gives; a refusal gives nothing and must have changed nothing.
    template <typename Call>
    auto attempt(Call&& call) {
        const std::uint64_t before = program_->fingerprint();
        auto result = call();
        ++outcomes_[result ? "done" : std::string(to_string(result.error().kind))];
        using Value = std::remove_cvref_t<decltype(result.value())>;
        if (result) return std::optional<Value>(std::move(result).value());
        ++refused_;
        EXPECT_EQ(program_->fingerprint(), before) << result.error().message();
        return std::optional<Value>();
    }
    template <typename Map>
    auto any_of(Map& map) {
        auto chosen = map.begin();
        if (!map.empty()) std::advance(chosen, draw(std::ssize(map)));
        return chosen;
    }

    void open_a_root() {
        const auto opened = attempt([&] { return program_->open_sequence({1 + draw(kLongest), false, draw(3)}); });
        if (opened) sequences_[opened.value().value] = {};
    }
    void open_from_a_checkpoint() {
        const auto from = any_of(checkpoints_);
        if (from == checkpoints_.end()) return;
        SequenceSource source{{from->first}, draw(3) == 0 ? SourceUse::kConsume : SourceUse::kRetain, {}};
        if (draw(3) == 0) source.frontier = draw(std::ssize(from->second) + 1);
        const std::int64_t frontier = source.frontier.value_or(std::ssize(from->second));
        const auto before = from->second;
        const auto opened = attempt([&] { return program_->open_from(source, {frontier + draw(90), false, draw(2)}); });
        if (!opened) return;
        sequences_[opened.value().value] = first_of(before, frontier);
        sources_[opened.value().value] = before;
        forget_gone();
    }
    void compute_some() {
        const auto sequence = any_of(sequences_);
        if (sequence == sequences_.end()) return;
        const SequenceHandle handle{sequence->first};
        const Sequence& found = *program_->find(handle).value();
        const auto room = found.reserved - found.length;
        if (room < 1) return;
        const auto tokens = random_tokens(1 + draw(std::min<std::int64_t>(room, 70)));
        // Everything is computed, so that a sequence that is ready has nothing to do.
        attempt([&] { return program_->prefill(handle, 1); });
        if (program_->prefill(handle, 1).error().kind != RefusalKind::kNothingToCompute) return;
        expect_continues(handle, sequence->second, tokens);
        sequence->second = joined(sequence->second, tokens);
    }
    void capture_one() {
        const auto sequence = any_of(sequences_);
        if (sequence == sequences_.end()) return;
        const CaptureRequest request{static_cast<CheckpointKind>(draw(kCheckpointKinds)), any_tier(), draw(2) == 0};
        const auto captured = attempt([&] { return program_->capture({sequence->first}, request); });
        if (captured) checkpoints_[captured.value().value] = sequence->second;
    }
    void finish_one() {
        const auto sequence = any_of(sequences_);
        if (sequence == sequences_.end()) return;
        const auto owner = attempt(
            [&] { return program_->finish({sequence->first}, {CheckpointKind::kSessionEndpoint, any_tier()}); });
        if (!owner) return;
        const auto endpoint = ok(program_->owner(owner.value())).checkpoints.back();
        checkpoints_[endpoint.value] = sequence->second;
        sequences_.erase(sequence);
    }
    void close_one() {
        const auto sequence = any_of(sequences_);
        if (sequence == sequences_.end() || draw(3) > 0) return;
        close(SequenceHandle{sequence->first});
        sequences_.erase(sequence);
        forget_gone();
    }
    // One that took its owner over and has not computed may leave its source behind, under another handle.
    void close(SequenceHandle sequence) {
        const OwnerHandle owner = program_->find(sequence).value()->owner;
        ok(program_->close_sequence(sequence));
        const auto back = program_->owner(owner);
        if (!back) return;
        for (const CheckpointHandle checkpoint : back.value().checkpoints)
            if (!checkpoints_.contains(checkpoint.value))
                checkpoints_[checkpoint.value] =
                    first_of(sources_.at(sequence.value), ok(program_->checkpoint(checkpoint)).frontier);
    }
    void move_one() {
        const auto checkpoint = any_of(checkpoints_);
        if (checkpoint == checkpoints_.end()) return;
        attempt([&] { return program_->start_copy({checkpoint->first}, any_tier()); });
        if (draw(4) > 0) return;
        ok(program_->cancel_copies({checkpoint->first}));
        forget_gone();
    }
    void drop_one() {
        const auto checkpoint = any_of(checkpoints_);
        if (checkpoint == checkpoints_.end()) return;
        attempt([&] { return program_->drop({checkpoint->first}, any_tier()); });
    }
    void delete_one() {
        const auto checkpoint = any_of(checkpoints_);
        if (checkpoint == checkpoints_.end() || draw(2) > 0) return;
        if (draw(2) == 0)
            attempt([&] { return program_->delete_checkpoint({checkpoint->first}); });
        else
            attempt([&] { return program_->release_owner(ok(program_->checkpoint({checkpoint->first})).owner); });
        forget_gone();
    }
    void poll_some() {
        const auto budget = draw(8) == 0 ? std::size_t{1} << 30 : static_cast<std::size_t>(draw(60'000));
        program_->poll_copies(budget);
        forget_gone();
    }
    void forget_gone() {
        std::erase_if(checkpoints_, [&](const auto& item) { return !program_->checkpoint({item.first}).has_value(); });
    }

    // Every checkpoint that is left is what it was; then everything goes.
    void end() {
        for (const auto& [sequence, tokens] : sequences_) close(SequenceHandle{sequence});
        sequences_.clear();
        drain();
        for (const auto& [checkpoint, tokens] : checkpoints_) continue_from({checkpoint}, tokens);
        while (!checkpoints_.empty()) {
            ok(program_->delete_checkpoint({checkpoints_.begin()->first}));
            checkpoints_.erase(checkpoints_.begin());
        }
        drain();
        expect_idle();
        for (const auto& [outcome, count] : outcomes_) RecordProperty(outcome, count);
        EXPECT_GE(refused_, kFewestRefused) << "hardly a refusal was there to compare the state with";
        EXPECT_GE(outcomes_["done"], kFewestDone);
        EXPECT_GE(std::ssize(outcomes_), kFewestOutcomes);
    }
    void drain() {
        for (CopyProgress progress = poll(); progress.open + progress.draining > 0;) progress = poll();
        forget_gone();
    }
    void continue_from(CheckpointHandle checkpoint, const Tokens& tokens) {
        // A copy may fail again and again; not every time.
        for (int attempts = 0; attempts < 50; ++attempts) {
            if (!program_->start_copy(checkpoint, Tier::kDevice)) return;  // no room for all of them at once
            drain();
            const auto opened = program_->open_from({checkpoint}, {.tokens = std::ssize(tokens) + 5});
            if (!opened) continue;
            drain();
            const bool ready = !program_->find(opened.value()).value()->not_ready();
            if (ready) expect_continues(opened.value(), tokens, random_tokens(5));
            ok(program_->close_sequence(opened.value()));
            drain();
            if (ready) return;
        }
    }

    std::mt19937_64 engine_random_{test_seed() + 1};
    std::map<std::uint64_t, Tokens> sequences_;    // what each has computed
    std::map<std::uint64_t, Tokens> checkpoints_;  // what each stands for
    std::map<std::uint64_t, Tokens> sources_;      // of sequences: what they started from
    std::map<std::string, int> outcomes_;
    int refused_ = 0;
};

TEST_F(ProgramRandomTest, AHybridSurvivesSlowAndFailingCopies) {
    run(true, {.fail_percent = 15, .delay_polls_most = 3});
}
TEST_F(ProgramRandomTest, AHybridSurvivesSlowCopies) { run(true, {.fail_percent = 0, .delay_polls_most = 2}); }
TEST_F(ProgramRandomTest, AttentionAloneSurvivesSlowAndFailingCopies) {
    run(false, {.fail_percent = 15, .delay_polls_most = 3});
}

}  // namespace
}  // namespace ninfer
