// Decode rounds allocate nothing: a counting operator new sees 0 calls over 1,000 rounds of eight rows.

#include "cpp/base/error.h"
#include "cpp/memory/host_copy_engine.h"
#include "cpp/program/context_stores.h"
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

// The tables of the stores are as large as they ever get from the start: there the world may refuse, and nowhere later.
TEST(ContextStoresTest, TablesThatFindNoMemoryAreNamed) {
    ContextSizes sizes;
    sizes.kv_pages = 40;
    sizes.page_bytes = 512;
    sizes.image_bytes = 4096;
    sizes.lanes = 2;
    sizes.checkpoint_slots = 3;
    sizes.host_bytes = 1 << 16;
    std::int64_t refusals = 0;
    for (std::int64_t successes = 0; successes < 100; ++successes) {
        auto engine = std::make_unique<HostCopyEngine>();
        testing_support::allocations_left = successes;
        try {
            const ContextStores stores(sizes, std::move(engine));
            testing_support::allocations_left = testing_support::kUnlimited;
            break;
        } catch (const OutOfMemoryError& error) {
            testing_support::allocations_left = testing_support::kUnlimited;
            ++refusals;
            EXPECT_STREQ(error.what(), "tables of 40 Device pages and 65536 bytes on Host");
        }
    }
    EXPECT_LE(3, refusals);
    EXPECT_LT(refusals, 100);
}

TEST_F(ProgramTest, MemoryThatRunsOutRefusesCleanlyOrStopsTheProcess) {
    const auto program = make_program(default_options(), WeightStorage::kF32, KvStorage::kF32);
    const SequenceRequest request{64, true, 0, {}};
    const auto open = [&](std::int64_t allocations) {
        testing_support::allocations_left = allocations;
        return program->open_sequence(request).has_value();
    };
    const auto before = program->fingerprint();
    // The two arrays of counts, which may be large, come first.
    for (const std::int64_t allocations : {0, 1}) {
        EXPECT_THROW(open(allocations), std::bad_alloc);
        EXPECT_EQ(program->fingerprint(), before);
        program->check_invariants();
    }
    EXPECT_DEATH(open(1), "memory ran out in the middle of a change");
    testing_support::allocations_left = testing_support::kUnlimited;
    EXPECT_TRUE(open(testing_support::kUnlimited));
}

TEST_F(ProgramTest, TheCounterCounts) {
    const auto before = testing_support::allocations();
    const auto value = std::make_unique<int>(1);
    EXPECT_EQ(testing_support::allocations(), before + *value);
}

}  // namespace
}  // namespace ninfer
