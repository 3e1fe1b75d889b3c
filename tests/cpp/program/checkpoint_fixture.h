#pragma once

// A tiny model on small stores with copies that end when the test says so, and a second program that never saw a
// checkpoint: what an undisturbed run computes.

#include <cstring>
#include <optional>

#include "tests/cpp/program/program_fixture.h"
#include "tests/support/manual_copy_engine.h"

namespace ninfer::testing_support {

class CheckpointTest : public ProgramTest {
   protected:
    using Tokens = std::vector<std::int32_t>;
    static constexpr std::int64_t kDevicePages = 24;
    static constexpr std::int64_t kCheckpointSlots = 3;
    static constexpr std::int64_t kHostPages = 14;

    void TearDown() override {
        if (!program_) return;
        program_->check_invariants();
        if (engine_ != nullptr) engine_->complete_all();  // so that copies which a test left open can drain
    }

    // Recurrent layers and attention, or attention alone.
    void load(bool recurrent, KvStorage kv = KvStorage::kF32) { load_with(recurrent, kv, manual_engine()); }
    void load_with(bool recurrent, KvStorage kv, std::unique_ptr<CopyEngine> engine) {
        load_model(recurrent ? tiny_config() : tiny_attention_config(), kv, std::move(engine));
    }
    std::unique_ptr<CopyEngine> manual_engine() {
        auto engine = std::make_unique<ManualCopyEngine>();
        engine_ = engine.get();
        return engine;
    }
    void load_model(const Qwen35Config& config, KvStorage kv, std::unique_ptr<CopyEngine> engine) {
        auto model = TinyModelBuilder(test_seed(), WeightStorage::kF32, config).build();
        auto options = small_options();
        undisturbed_ = std::make_unique<Program>(model.spec, model.store, kv, options);
        options.checkpoint_slots = kCheckpointSlots;
        const auto statistics = undisturbed_->statistics();
        // An image takes whole blocks.
        options.host_bytes =
            kHostPages * statistics.page_bytes + 2 * (statistics.state_image_bytes + statistics.host_block_bytes);
        program_ = std::make_unique<Program>(model.spec, model.store, kv, options, std::move(engine));
    }
    void load_hybrid() { load(true); }

    static ProgramOptions small_options() {
        auto options = default_options();
        options.kv_pages = kDevicePages;
        options.max_concurrency = 3;
        return options;
    }

    template <typename T>
    static T ok(Result<T, Refusal> result) {
        if (!result) {
            ADD_FAILURE() << "refused: " << result.error().message();
            std::abort();
        }
        return std::move(result).value();
    }
    // The call is refused with these values, and nothing at all has changed.
    template <typename Call>
    void expect_refused(Call&& call, RefusalKind kind, std::int64_t wanted, std::int64_t found) {
        const std::uint64_t before = program_->fingerprint();
        const auto result = call();
        ASSERT_FALSE(result.has_value()) << "not refused; wanted " << to_string(kind);
        EXPECT_EQ(to_string(result.error().kind), to_string(kind));
        EXPECT_EQ(result.error().wanted, wanted) << to_string(kind);
        EXPECT_EQ(result.error().found, found) << to_string(kind);
        EXPECT_EQ(program_->fingerprint(), before) << to_string(kind);
        program_->check_invariants();
    }
    // The call moves the revision by so much.
    template <typename Call>
    auto moving(std::uint64_t by, Call&& call) {
        const std::uint64_t before = program_->resource_revision();
        auto result = call();
        EXPECT_EQ(program_->resource_revision(), before + by);
        program_->check_invariants();
        return result;
    }

    // Every open copy arrives.
    CopyProgress settle() {
        engine_->complete_all();
        return poll();
    }
    CopyProgress fail_copies() {
        engine_->fail_all();
        return poll();
    }
    CopyProgress poll() {
        CopyProgress progress = program_->poll_copies(CopyEngine::kDecodingBudgetBytes);
        program_->check_invariants();
        return progress;
    }

    SequenceHandle open_root(std::int64_t tokens, std::int64_t captures = 0) {
        return ok(program_->open_sequence({tokens, false, captures}));
    }
    SequenceHandle open_from(CheckpointHandle from, std::int64_t tokens, SourceUse use = SourceUse::kRetain) {
        return ok(program_->open_from({from, use, {}}, {.tokens = tokens}));
    }
    // Computes these tokens; the logits after each, [n, vocab_size].
    static std::vector<float> compute(Program& program, SequenceHandle sequence, const Tokens& tokens) {
        ok(program.append(sequence, tokens, TokenOrigin::kPrompt));
        const auto vocab_size = static_cast<std::size_t>(program.decoder().spec().vocab_size);
        std::vector<float> logits(tokens.size() * vocab_size);
        for (std::size_t done = 0; done < tokens.size();)
            done += static_cast<std::size_t>(
                ok(program.prefill_logits(sequence, std::ssize(tokens) - static_cast<std::int64_t>(done),
                                          std::span(logits).subspan(done * vocab_size))));
        return logits;
    }
    std::vector<float> compute(SequenceHandle sequence, const Tokens& tokens) {
        return compute(*program_, sequence, tokens);
    }
    // What a run that is never interrupted computes for the last `last` tokens.
    std::vector<float> undisturbed(const Tokens& tokens, std::size_t last) {
        const auto sequence = ok(undisturbed_->open_sequence({.tokens = std::ssize(tokens)}));
        const auto logits = compute(*undisturbed_, sequence, tokens);
        ok(undisturbed_->close_sequence(sequence));
        const auto vocab_size = static_cast<std::size_t>(undisturbed_->decoder().spec().vocab_size);
        return {logits.end() - static_cast<std::ptrdiff_t>(last * vocab_size), logits.end()};
    }
    // The sequence, which has computed `before`, computes `tokens` with the bits of an undisturbed run.
    void expect_continues(SequenceHandle sequence, const Tokens& before, const Tokens& tokens) {
        const auto found = compute(sequence, tokens);
        const auto expected = undisturbed(joined(before, tokens), tokens.size());
        ASSERT_EQ(found.size(), expected.size());
        EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size() * sizeof(float)), 0);
    }

    static Tokens joined(Tokens first, const Tokens& second) {
        first.insert(first.end(), second.begin(), second.end());
        return first;
    }
    static Tokens first_of(const Tokens& tokens, std::int64_t count) {
        return {tokens.begin(), tokens.begin() + count};
    }

    // A finished private owner of one endpoint.
    CheckpointHandle endpoint_of(const Tokens& tokens, Tier tier = Tier::kDevice) {
        const auto sequence = open_root(std::ssize(tokens));
        compute(sequence, tokens);
        const auto owner = ok(program_->finish(sequence, {CheckpointKind::kSessionEndpoint, tier}));
        return ok(program_->owner(owner)).checkpoints.back();
    }
    void move_to(CheckpointHandle checkpoint, Tier tier) {
        EXPECT_LT(0, ok(program_->start_copy(checkpoint, tier)));
        settle();
        ok(program_->drop(checkpoint, tier == Tier::kHost ? Tier::kDevice : Tier::kHost));
    }
    // Nothing is in use: pages, slots and blocks are all free, and nobody owns anything.
    void expect_idle() {
        poll();
        const auto statistics = program_->statistics();
        EXPECT_EQ(statistics.used, UsedVector{});
        EXPECT_EQ(statistics.pages_free, kDevicePages);
        EXPECT_EQ(statistics.lanes_open, 0);
        EXPECT_EQ(statistics.owners, 0);
        EXPECT_EQ(statistics.checkpoints, 0);
        EXPECT_EQ(statistics.copies_open + statistics.copies_draining, 0);
        EXPECT_EQ(engine_ != nullptr ? engine_->copies() : 0U, 0U);
    }

    ManualCopyEngine* engine_ = nullptr;  // the program's
    std::unique_ptr<Program> program_;
    std::unique_ptr<Program> undisturbed_;
};

}  // namespace ninfer::testing_support
