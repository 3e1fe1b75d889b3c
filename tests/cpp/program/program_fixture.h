#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>

#include "cpp/program/program.h"
#include "tests/cpp/program/tiny_model.h"
#include "tests/support/test_seed.h"

namespace ninfer::testing_support {

class ProgramTest : public testing::Test {
   protected:
    static constexpr std::int64_t kPages = 12;
    static constexpr std::int64_t kMaxContext = 512;
    static constexpr std::int64_t kLanes = 4;

    static ProgramOptions default_options() {
        ProgramOptions options;
        options.isa = best_instruction_set();
        options.threads = 2;
        options.kv_pages = kPages;
        options.max_context = kMaxContext;
        options.max_concurrency = kLanes;
        options.max_unit_rows = 64;
        options.valid_tokens = tiny_config().vocab_size - 3;
        return options;
    }
    std::unique_ptr<Program> make_program(const ProgramOptions& options, WeightStorage storage = WeightStorage::kF32,
                                          KvStorage kv = KvStorage::kF32) {
        auto model = TinyModelBuilder(test_seed(), storage).build();
        return std::make_unique<Program>(std::move(model.spec), model.store, kv, options);
    }

    std::vector<std::int32_t> random_tokens(std::int64_t count) {
        std::vector<std::int32_t> tokens(static_cast<std::size_t>(count));
        for (auto& token : tokens)
            token = static_cast<std::int32_t>(engine_() % static_cast<std::uint64_t>(tiny_config().vocab_size - 3));
        return tokens;
    }
    static SequenceHandle open(Program& program, const std::vector<std::int32_t>& prompt, std::int64_t output) {
        const auto handle = program.open_sequence({.tokens = std::ssize(prompt) + output}).value();
        EXPECT_TRUE(program.append(handle, prompt, TokenOrigin::kPrompt).has_value());
        return handle;
    }
    static std::vector<float> logits_of(const Program& program, std::int64_t row) {
        const auto logits = program.last_logits(row);
        return {logits.begin(), logits.end()};
    }
    // Prefills in chunks and commits the sampled token; returns it.
    static std::int32_t run_prompt(Program& program, SequenceHandle handle, std::int64_t chunk) {
        while (program.find(handle).value()->uncomputed() > chunk)
            EXPECT_TRUE(program.prefill(handle, chunk).has_value());
        const auto batch = program.finish_prefill({handle, {}}).value();
        const std::int32_t accepted = 1;
        EXPECT_TRUE(program.commit(batch, {&accepted, 1}).has_value());
        return batch.sampled[0].id;
    }

    std::mt19937_64 engine_{test_seed()};
    SeedTrace seed_trace_;
};

}  // namespace ninfer::testing_support
