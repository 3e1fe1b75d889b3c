#include "cpp/program/program.h"

#include "tests/cpp/program/program_fixture.h"

namespace ninfer {
namespace {

using testing_support::ProgramTest;

constexpr std::int32_t kAccept[] = {1, 1, 1, 1};

void expect_refusal(const auto& result, RefusalKind kind, std::int64_t wanted, std::int64_t found) {
    ASSERT_FALSE(result.has_value());
    EXPECT_EQ(to_string(result.error().kind), to_string(kind));
    EXPECT_EQ(result.error().wanted, wanted) << result.error().message();
    EXPECT_EQ(result.error().found, found) << result.error().message();
}

TEST_F(ProgramTest, BatchedDecodeGivesTheLogitsOfEachSequenceAlone) {
    for (const auto storage : {WeightStorage::kF32, WeightStorage::kBf16, WeightStorage::kQ8, WeightStorage::kQ4}) {
        const auto together = make_program(default_options(), storage);
        const auto alone = make_program(default_options(), storage);
        std::vector<std::vector<std::int32_t>> prompts = {random_tokens(1), random_tokens(64), random_tokens(65)};
        std::vector<RowRequest> rows;
        for (const auto& prompt : prompts) {
            rows.push_back({open(*together, prompt, 20), {}});
            run_prompt(*together, rows.back().sequence, 64);
        }
        std::vector<std::vector<std::vector<float>>> batched(prompts.size());
        for (int round = 0; round < 19; ++round) {
            const auto batch = together->decode(rows).value();
            for (std::size_t i = 0; i < rows.size(); ++i)
                batched[i].push_back(logits_of(*together, static_cast<std::int64_t>(i)));
            ASSERT_TRUE(together->commit(batch, std::span(kAccept).first(rows.size())).has_value());
        }
        for (std::size_t i = 0; i < prompts.size(); ++i) {
            const RowRequest row{open(*alone, prompts[i], 20), {}};
            run_prompt(*alone, row.sequence, 7);
            for (int round = 0; round < 19; ++round) {
                const auto batch = alone->decode({&row, 1}).value();
                ASSERT_EQ(logits_of(*alone, 0), batched[i][static_cast<std::size_t>(round)]) << i << " " << round;
                ASSERT_TRUE(alone->commit(batch, std::span(kAccept).first(1)).has_value());
            }
            ASSERT_TRUE(alone->close_sequence(row.sequence).has_value());
        }
    }
}

TEST_F(ProgramTest, ReusedLaneStartsFromAnEmptyState) {
    const auto program = make_program(default_options());
    const auto prompt = random_tokens(130);
    const auto first = open(*program, prompt, 1);
    run_prompt(*program, first, 64);
    const auto expected = logits_of(*program, 0);
    ASSERT_TRUE(program->close_sequence(first).has_value());
    const auto second = open(*program, prompt, 1);
    EXPECT_NE(first, second);
    run_prompt(*program, second, 64);
    EXPECT_EQ(logits_of(*program, 0), expected);
}

TEST_F(ProgramTest, AbortKeepsTheLedgerAndForcedTokensContinueExactly) {
    const auto program = make_program(default_options());
    const auto prompt = random_tokens(40);
    const auto forced = random_tokens(1);
    const auto handle = open(*program, prompt, 8);
    const auto batch = program->finish_prefill({handle, {}}).value();
    ASSERT_TRUE(program->abort(batch).has_value());
    EXPECT_EQ(program->find(handle).value()->length, std::ssize(prompt));
    expect_refusal(program->decode(std::array{RowRequest{handle, {}}}), RefusalKind::kNotOneUncomputed, 1, 0);
    ASSERT_TRUE(program->append(handle, forced, TokenOrigin::kPrompt).has_value());
    ASSERT_TRUE(program->decode(std::array{RowRequest{handle, {}}}).has_value());
    const auto continued = logits_of(*program, 0);

    const auto undisturbed = make_program(default_options());
    auto whole = prompt;
    whole.push_back(forced[0]);
    const auto other = open(*undisturbed, whole, 8);
    run_prompt(*undisturbed, other, 64);
    EXPECT_EQ(continued, logits_of(*undisturbed, 0));
}

TEST_F(ProgramTest, CountsPromptTokensThatStepsComputed) {
    const auto program = make_program(default_options());
    const auto prompt = random_tokens(100);
    const auto handle = open(*program, prompt, 10);
    run_prompt(*program, handle, 33);
    for (int round = 0; round < 3; ++round) {
        const auto batch = program->decode(std::array{RowRequest{handle, {}}}).value();
        ASSERT_TRUE(program->commit(batch, std::span(kAccept).first(1)).has_value());
    }
    EXPECT_EQ(program->find(handle).value()->prompt_tokens_computed, 100);
    EXPECT_EQ(program->find(handle).value()->computed, 103);
    EXPECT_EQ(program->statistics().tokens_computed, 103);
}

TEST_F(ProgramTest, PaddedVocabularyIsNeverSampled) {
    auto options = default_options();
    options.valid_tokens = 1;
    const auto program = make_program(options);
    const auto handle = open(*program, {0, 1, 2}, 4);
    EXPECT_EQ(run_prompt(*program, handle, 64), 0);
}

TEST_F(ProgramTest, RefusesHandlesAndSizesWithBothValuesAndChangesNothing) {
    const auto program = make_program(default_options());
    expect_refusal(program->open_sequence({.tokens = kMaxContext + 1}), RefusalKind::kOverContext, kMaxContext + 1,
                   kMaxContext);
    const auto handle = open(*program, random_tokens(10), 0);
    expect_refusal(program->append(handle, random_tokens(1), TokenOrigin::kPrompt), RefusalKind::kOverReservation, 11,
                   10);
    const auto big = program->open_sequence({.tokens = kMaxContext}).value();
    expect_refusal(program->open_sequence({.tokens = 64 * (kPages - 8)}), RefusalKind::kNoPages, kPages - 8,
                   kPages - 9);
    expect_refusal(program->append(big, std::array{std::int32_t{-1}}, TokenOrigin::kPrompt), RefusalKind::kTokenId, -1,
                   testing_support::tiny_config().vocab_size);
    EXPECT_EQ(program->find(big).value()->length, 0);
    expect_refusal(program->prefill(big, 5), RefusalKind::kNothingToCompute, 1, 0);
    ASSERT_TRUE(program->close_sequence(big).has_value());
    expect_refusal(program->close_sequence(big), RefusalKind::kStaleHandle, big.generation(), big.generation());
    const auto again = program->open_sequence({.tokens = 1}).value();
    EXPECT_EQ(again.slot(), big.slot());
    expect_refusal(program->append(big, std::array{std::int32_t{1}}, TokenOrigin::kPrompt), RefusalKind::kStaleHandle,
                   big.generation(), again.generation());
    expect_refusal(program->append({~std::uint64_t{0}}, std::array{std::int32_t{1}}, TokenOrigin::kPrompt),
                   RefusalKind::kStaleHandle, 0xFFFFFFFF, 0);
    while (program->open_sequence({.tokens = 1}).has_value()) {
    }
    expect_refusal(program->open_sequence({.tokens = 1}), RefusalKind::kNoLane, kLanes + 1, kLanes);
}

TEST_F(ProgramTest, PendingBatchFreezesItsMembersUntilOneEnding) {
    const auto program = make_program(default_options());
    const auto handle = open(*program, random_tokens(5), 3);
    const auto other = open(*program, random_tokens(5), 3);
    expect_refusal(program->commit({}, std::span(kAccept).first(1)), RefusalKind::kNoPendingBatch, 0, 0);
    const auto batch = program->finish_prefill({handle, {}}).value();
    const auto id = static_cast<std::int64_t>(batch.id);
    expect_refusal(program->prefill(other, 2), RefusalKind::kPendingBatch, 0, id);
    expect_refusal(program->append(handle, random_tokens(1), TokenOrigin::kPrompt), RefusalKind::kPendingBatch, 0, id);
    expect_refusal(program->close_sequence(handle), RefusalKind::kPendingBatch, 0, id);
    expect_refusal(program->commit(batch, std::span(kAccept).first(2)), RefusalKind::kAcceptedCount, 2, 1);
    expect_refusal(program->commit(batch, std::array{2}), RefusalKind::kAcceptedCount, 2, 1);
    EXPECT_EQ(program->find(handle).value()->length, 5);
    ASSERT_TRUE(program->commit(batch, std::span(kAccept).first(1)).has_value());
    expect_refusal(program->commit(batch, std::span(kAccept).first(1)), RefusalKind::kNoPendingBatch, id, 0);
    expect_refusal(program->abort(batch), RefusalKind::kNoPendingBatch, id, 0);
    EXPECT_EQ(program->find(handle).value()->length, 6);
}

TEST_F(ProgramTest, EndedBatchDoesNotEndALaterOne) {
    const auto program = make_program(default_options());
    const auto handle = open(*program, random_tokens(5), 3);
    const auto first = program->finish_prefill({handle, {}}).value();
    ASSERT_TRUE(program->commit(first, std::span(kAccept).first(1)).has_value());
    const auto later = program->decode(std::array{RowRequest{handle, {}}}).value();
    const auto ended = static_cast<std::int64_t>(first.id);
    const auto pending = static_cast<std::int64_t>(later.id);
    expect_refusal(program->commit(first, std::span(kAccept).first(1)), RefusalKind::kNoPendingBatch, ended, pending);
    expect_refusal(program->abort(first), RefusalKind::kNoPendingBatch, ended, pending);
    EXPECT_EQ(program->find(handle).value()->length, 6);
    ASSERT_TRUE(program->commit(later, std::span(kAccept).first(1)).has_value());
    EXPECT_EQ(program->find(handle).value()->length, 7);
}

TEST_F(ProgramTest, RowOfWhichNothingIsAcceptedGetsNoToken) {
    const auto program = make_program(default_options());
    const auto kept = open(*program, random_tokens(5), 3);
    const auto cancelled = open(*program, random_tokens(7), 3);
    run_prompt(*program, kept, 64);
    run_prompt(*program, cancelled, 64);
    const auto before = program->tokens(cancelled).value();
    const auto batch = program->decode(std::array{RowRequest{cancelled, {}}, RowRequest{kept, {}}}).value();
    ASSERT_TRUE(program->commit(batch, std::array{0, 1}).has_value());
    EXPECT_EQ(program->tokens(cancelled).value(), before);
    EXPECT_EQ(program->find(cancelled).value()->uncomputed(), 0);
    EXPECT_EQ(program->tokens(kept).value().size(), 7U);
    EXPECT_EQ(program->tokens(kept).value().back(), batch.sampled[1].id);
}

TEST_F(ProgramTest, BatchOfAnotherProgramIsRefused) {
    const auto program = make_program(default_options());
    const auto other = make_program(default_options());
    const auto prompt = random_tokens(5);
    const auto batch = program->finish_prefill({open(*program, prompt, 3), {}}).value();
    const auto others = other->finish_prefill({open(*other, prompt, 3), {}}).value();
    ASSERT_EQ(batch.id, others.id);
    expect_refusal(program->commit(others, std::span(kAccept).first(1)), RefusalKind::kNoPendingBatch, 1, 1);
    expect_refusal(program->abort(others), RefusalKind::kNoPendingBatch, 1, 1);
    ASSERT_TRUE(program->commit(batch, std::span(kAccept).first(1)).has_value());
}

TEST_F(ProgramTest, LostBatchIsEndedByAbortPending) {
    const auto program = make_program(default_options());
    const auto handle = open(*program, random_tokens(5), 3);
    EXPECT_FALSE(program->abort_pending());
    ASSERT_TRUE(program->finish_prefill({handle, {}}).has_value());
    EXPECT_TRUE(program->abort_pending());
    EXPECT_FALSE(program->abort_pending());
    EXPECT_EQ(program->find(handle).value()->length, 5);
    ASSERT_TRUE(program->close_sequence(handle).has_value());
}

TEST_F(ProgramTest, ForcedOutputCountsAsOutput) {
    const auto program = make_program(default_options());
    const auto handle = program->open_sequence({.tokens = 16, .count_tokens = true}).value();
    ASSERT_TRUE(program->append(handle, std::array{1, 2, 3, 4, 5}, TokenOrigin::kPrompt).has_value());
    run_prompt(*program, handle, 64);
    ASSERT_TRUE(program->append(handle, std::array{7, 7}, TokenOrigin::kOutput).has_value());
    ASSERT_TRUE(program->append(handle, std::array{9}, TokenOrigin::kPrompt).has_value());
    run_prompt(*program, handle, 64);
    const Sequence& sequence = *program->find(handle).value();
    EXPECT_EQ(sequence.computed, 9);
    EXPECT_EQ(sequence.prompt_tokens_computed, 6);
    EXPECT_EQ(sequence.output_count, 4);
    EXPECT_GE(sequence.output_counts[7], 2U);
    const auto tokens = program->tokens(handle).value();
    EXPECT_EQ(sequence.output_counts[9] + sequence.output_counts[7] + 0U,
              static_cast<unsigned>(std::count(tokens.begin() + 5, tokens.end(), 7)) +
                  static_cast<unsigned>(std::count(tokens.begin() + 5, tokens.end(), 9)) - 1U);
}

TEST_F(ProgramTest, ScratchBoundHoldsForEveryStorageAndUnitLength) {
    for (const auto storage : {WeightStorage::kF32, WeightStorage::kBf16, WeightStorage::kQ8, WeightStorage::kQ4})
        for (const std::int64_t rows : {1, 2, 63, 64, 200})
            for (const int threads : {1, 3}) {
                auto options = default_options();
                options.max_unit_rows = rows;
                options.threads = threads;
                const auto program = make_program(options, storage, KvStorage::kInt8);
                const auto handle = open(*program, random_tokens(250), 1);
                run_prompt(*program, handle, rows);
                const auto bound = static_cast<std::int64_t>(
                    program->decoder().scratch_bytes(std::max(rows, options.max_concurrency), threads));
                EXPECT_LE(program->statistics().scratch_peak_bytes,
                          std::max(bound, static_cast<std::int64_t>(sampling_scratch_bytes(kLanes, 96))));
            }
}

TEST_F(ProgramTest, RefusesBatchesThatAreNoRound) {
    const auto program = make_program(default_options());
    const auto handle = open(*program, random_tokens(5), 3);
    expect_refusal(program->decode({}), RefusalKind::kBatchSize, 0, kLanes);
    expect_refusal(program->decode(std::vector<RowRequest>(5, RowRequest{handle, {}})), RefusalKind::kBatchSize, 5,
                   kLanes);
    expect_refusal(program->decode(std::array{RowRequest{handle, {}}}), RefusalKind::kNotOneUncomputed, 1, 5);
    run_prompt(*program, handle, 64);
    expect_refusal(program->decode(std::array{RowRequest{handle, {}}, RowRequest{handle, {}}}),
                   RefusalKind::kDuplicateRow, handle.slot(), handle.slot());
    EXPECT_EQ(program->find(handle).value()->uncomputed(), 1);
}

}  // namespace
}  // namespace ninfer
