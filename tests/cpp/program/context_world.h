#pragma once

// A program's state without a model: sequences "compute" bytes that follow from their tokens, so that every replica of
// every checkpoint can be compared with what it must hold, wherever it lies.

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "cpp/program/capture.h"
#include "cpp/program/checkpoint_placement.h"
#include "cpp/program/checkpoint_removal.h"
#include "cpp/program/context_transaction.h"
#include "cpp/program/copy_polling.h"
#include "cpp/program/planning_session.h"
#include "cpp/program/sequence_opening.h"
#include "cpp/state/page_count.h"
#include "tests/support/manual_copy_engine.h"
#include "tests/support/test_seed.h"

namespace ninfer::testing_support {

using Tokens = std::vector<std::int32_t>;

struct ContextWorldSizes {
    std::int64_t pages = 16;
    std::int64_t lanes = 3;
    std::int64_t checkpoint_slots = 4;
    std::int64_t host_pages = 8;  // bytes of so many pages
    bool recurrent = true;
    std::int64_t max_context = 4096;
};

class ContextWorld {
   public:
    static constexpr std::size_t kPageBytes = 4 * kPageTokens;
    static constexpr std::size_t kImageBytes = 320;  // two blocks of a page's size

    ContextWorld(const ContextWorldSizes& sizes, std::uint64_t seed)
        : engine_owner_(std::make_unique<ManualCopyEngine>()),
          engine(engine_owner_.get()),
          state(context_sizes(sizes), std::move(engine_owner_)),
          random(seed) {}

    template <typename T>
    static T must(Result<T, Refusal> result) {
        if (!result) {
            ADD_FAILURE() << result.error().message();
            std::abort();
        }
        return std::move(result).value();
    }

    Tokens make_tokens(std::int64_t count) {
        Tokens tokens(static_cast<std::size_t>(count));
        for (auto& token : tokens) token = static_cast<std::int32_t>(random() % 50000);
        return tokens;
    }
    static Tokens joined(Tokens first, const Tokens& second) {
        first.insert(first.end(), second.begin(), second.end());
        return first;
    }
    static Tokens first_of(const Tokens& tokens, std::int64_t count) {
        return {tokens.begin(), tokens.begin() + count};
    }

    // --- sequences ----------------------------------------------------------------------------------------------------
    SequenceHandle open(std::int64_t tokens, std::int64_t captures = 0) {
        return must(open_root(state, {.tokens = tokens, .captures = captures}));
    }
    // Computes these tokens, as a unit would.
    void compute(SequenceHandle handle, const Tokens& tokens) {
        Sequence& sequence = state.sequences.at(handle);
        ASSERT_FALSE(state.not_ready(sequence)) << "a unit of a sequence that waits";
        must(state.stores.ledgers().append(sequence.ledger, {tokens, {}, TokenOrigin::kPrompt}));
        sequence.length += std::ssize(tokens);
        must(state.stores.kv().map(sequence.kv, sequence.length));
        const auto table = state.stores.kv().page_table(sequence.kv);
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            const std::int64_t position = sequence.computed + static_cast<std::int64_t>(i);
            std::memcpy(token_data(table, position), &tokens[i], 4);
        }
        must(state.stores.kv().commit(sequence.kv, sequence.length));
        if (state.stores.has_images()) {
            const std::uint32_t word = next_word(image_word(state.stores.images().read(sequence.image)), tokens);
            fill(state.stores.images().write(sequence.image), word);
            must(state.stores.images().commit(sequence.image));
        }
        sequence.computed = sequence.length;
    }
    Tokens tokens_of(SequenceHandle handle) const { return ledger_tokens(state.sequences.at(handle).ledger); }
    Tokens tokens_of(CheckpointHandle handle) const { return ledger_tokens(state.owners.find(handle).value()->ledger); }

    // --- checkpoints --------------------------------------------------------------------------------------------------
    // A private owner with an endpoint of these tokens.
    CheckpointHandle endpoint(const Tokens& tokens) { return endpoint_of(open(std::ssize(tokens)), tokens); }
    // One whose beginning is another checkpoint.
    CheckpointHandle extend(CheckpointHandle base, const Tokens& tokens) {
        const std::int64_t frontier = state.owners.find(base).value()->frontier;
        const auto sequence = must(open_from(state, {base}, {.tokens = frontier + std::ssize(tokens)}));
        settle();
        return endpoint_of(sequence, tokens);
    }
    CheckpointHandle endpoint_of(SequenceHandle sequence, const Tokens& tokens) {
        compute(sequence, tokens);
        const OwnerHandle owner = must(finish(state, sequence, {}));
        return state.owners.find(owner).value()->checkpoints.back();
    }
    OwnerHandle owner_of(CheckpointHandle checkpoint) const { return state.owners.find(checkpoint).value()->owner; }
    bool is_there(CheckpointHandle checkpoint) const { return state.owners.find(checkpoint).has_value(); }
    ResourceAxes used() const { return axes_of(state.stores.copies().used()); }
    ResourceAxes capacity() const { return axes_of(state.stores.copies().capacity()); }

    // Every open copy arrives, or fails, and what was waiting for it goes on.
    CopyProgress settle() {
        engine->complete_all();
        return poll();
    }
    CopyProgress fail() {
        engine->fail_all();
        return poll();
    }
    CopyProgress poll() {
        CopyProgress progress = poll_copies(state, SIZE_MAX);
        state.check_invariants();
        return progress;
    }

    // --- what is there ------------------------------------------------------------------------------------------------
    // Every replica of every checkpoint and everything that active sequences read is what their tokens say.
    void expect_all_bytes() {
        state.check_invariants();
        state.owners.for_each_checkpoint(
            [&](CheckpointHandle, const Checkpoint& checkpoint) { expect_bytes(checkpoint); });
        state.sequences.for_each(
            [&](SequenceHandle handle, const Sequence& sequence) { expect_bytes(handle, sequence); });
    }

   private:
    static ContextSizes context_sizes(const ContextWorldSizes& sizes) {
        ContextSizes made;
        made.kv_pages = sizes.pages;
        made.page_bytes = kPageBytes;
        made.image_bytes = sizes.recurrent ? kImageBytes : 0;
        made.lanes = sizes.lanes;
        made.checkpoint_slots = sizes.recurrent ? sizes.checkpoint_slots : 0;
        made.host_bytes = sizes.host_pages * static_cast<std::int64_t>(kPageBytes);
        made.max_context = sizes.max_context;
        made.vocab_size = 16;
        return made;
    }

    std::byte* token_data(std::span<const std::int32_t> table, std::int64_t position) {
        const KvPoolView pool = state.stores.kv().pool();
        const auto page = static_cast<std::size_t>(table[static_cast<std::size_t>(position / kPageTokens)]);
        return pool.data + page * pool.stride_bytes + position % kPageTokens * 4;
    }
    static std::uint32_t next_word(std::uint32_t word, const Tokens& tokens) {
        for (const std::int32_t token : tokens) word = word * 1664525U + static_cast<std::uint32_t>(token) + 1U;
        return word;
    }
    static std::uint32_t image_word(const std::byte* data) {
        std::uint32_t word = 0;
        std::memcpy(&word, data, 4);
        return word;
    }
    static void fill(std::byte* image, std::uint32_t word) {
        for (std::size_t i = 0; i < kImageBytes; i += 4) std::memcpy(image + i, &word, 4);
    }
    static void expect_word(const std::byte* data, std::uint32_t word) {
        for (std::size_t i = 0; i < kImageBytes; i += 4) ASSERT_EQ(std::memcmp(data + i, &word, 4), 0) << "byte " << i;
    }
    Tokens ledger_tokens(LedgerId ledger) const {
        const LedgerStore& ledgers = state.stores.ledgers();
        Tokens tokens(static_cast<std::size_t>(ledgers.length(ledger).value()));
        must(ledgers.read(ledger, 0, tokens));
        return tokens;
    }
    const std::byte* host_record(const BlockList& list, std::size_t bytes) {
        std::vector<CopySegment> segments;
        record_.resize(bytes);
        state.stores.host().append_from_host(list, record_.data(), bytes, segments);
        for (const auto& segment : segments) std::memcpy(segment.dst, segment.src, segment.bytes);
        return record_.data();
    }

    void expect_bytes(const Checkpoint& checkpoint) {
        const Tokens tokens = ledger_tokens(checkpoint.ledger);
        ASSERT_EQ(std::ssize(tokens), checkpoint.frontier);
        const KvPoolView pool = state.stores.kv().pool();
        std::int64_t begin = 0;
        state.stores.kv().for_each_page(checkpoint.kv, [&](PageId, const LogicalPage& page) {
            const auto bytes = static_cast<std::size_t>(std::min(checkpoint.frontier - begin, kPageTokens)) * 4;
            const auto expect = [&](const std::byte* replica) {
                EXPECT_EQ(std::memcmp(replica, tokens.data() + begin, bytes), 0) << "page at " << begin;
            };
            if (page.on_device()) expect(pool.data + static_cast<std::size_t>(page.device_page) * pool.stride_bytes);
            if (page.on_host()) expect(host_record(page.host, kPageBytes));
            begin += kPageTokens;
        });
        if (checkpoint.image == ImageId{}) return;
        const StateImage& image = *state.stores.images().find(checkpoint.image).value();
        const std::uint32_t word = next_word(0, tokens);
        if (image.on_device()) expect_word(state.stores.images().slot_data(image.slot), word);
        if (image.on_host()) expect_word(host_record(image.host, kImageBytes), word);
    }
    void expect_bytes(SequenceHandle handle, const Sequence& sequence) {
        if (state.not_ready(sequence)) return;
        const Tokens tokens = ledger_tokens(sequence.ledger);
        const auto table = state.stores.kv().page_table(sequence.kv);
        for (std::int64_t i = 0; i < sequence.computed; ++i)
            ASSERT_EQ(std::memcmp(token_data(table, i), &tokens[static_cast<std::size_t>(i)], 4), 0)
                << "token " << i << " of lane " << handle.slot();
        if (state.stores.has_images())
            expect_word(state.stores.images().read(sequence.image), next_word(0, first_of(tokens, sequence.computed)));
    }

    std::unique_ptr<ManualCopyEngine> engine_owner_;
    std::vector<std::byte> record_;

   public:
    ManualCopyEngine* engine;  // the state's
    ContextState state;
    std::mt19937_64 random;
};

}  // namespace ninfer::testing_support
