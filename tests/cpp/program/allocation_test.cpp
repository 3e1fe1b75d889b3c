// Decode rounds allocate nothing: a counting operator new sees 0 calls over 1,000 rounds of eight rows.

#include "tests/cpp/program/program_fixture.h"
#include "tests/support/counting_new.h"

namespace ninfer {
namespace {

using testing_support::ProgramTest;

constexpr std::int64_t kRounds = 1000;
constexpr std::int64_t kRows = 8;

std::int64_t allocations_of_rounds(Program& program, std::span<const RowRequest> rows) {
    const std::array<std::int32_t, kRows> accepted = {1, 1, 1, 1, 1, 1, 1, 1};
    const auto before = testing_support::allocations();
    for (std::int64_t round = 0; round < kRounds; ++round) {
        const auto batch = program.decode(rows);
        NINFER_ASSERT(batch.has_value(), "decode refused");
        NINFER_ASSERT(program.commit(batch.value(), accepted).has_value(), "commit refused");
    }
    return testing_support::allocations() - before;
}

TEST_F(ProgramTest, DecodeRoundsAllocateNothing) {
    auto options = default_options();
    options.max_concurrency = kRows;
    options.max_context = kRounds + 64;
    options.kv_pages = kRows * (options.max_context / 64 + 1);
    for (const auto storage : {WeightStorage::kF32, WeightStorage::kBf16, WeightStorage::kQ8, WeightStorage::kQ4}) {
        const auto program = make_program(options, storage, KvStorage::kInt8);
        std::vector<RowRequest> rows;
        for (std::int64_t row = 0; row < kRows; ++row) {
            const auto prompt = random_tokens(3 + row);
            const auto handle = program->open_sequence({std::ssize(prompt) + kRounds + 1, row % 2 == 0, 0, {}}).value();
            ASSERT_TRUE(program->append(handle, prompt, TokenOrigin::kPrompt).has_value());
            SamplerInput sampler;
            sampler.temperature = row < 4 ? 0.0F : 0.9F;
            sampler.top_k = 20;
            sampler.top_p = 0.95F;
            sampler.presence_penalty = row % 2 == 0 ? 0.5F : 0.0F;
            sampler.logprobs = 5;
            rows.push_back({handle, sampler});
            run_prompt(*program, handle, 64);
        }
        EXPECT_EQ(allocations_of_rounds(*program, rows), 0);
    }
}

TEST_F(ProgramTest, TheCounterCounts) {
    const auto before = testing_support::allocations();
    const auto value = std::make_unique<int>(1);
    EXPECT_EQ(testing_support::allocations(), before + *value);
}

}  // namespace
}  // namespace ninfer
