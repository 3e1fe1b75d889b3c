// Sequences that start from a checkpoint of 240,000 tokens at the Qwen3.5-0.8B shape: ledger, pages, state image and owner
// together, as a program opens them, and copies of all that to Host, which begin and are taken back before a byte has
// moved: rows that decode wait for this. Nothing is computed here; the paged_kv_bench holds the pages alone to their limit.
//
//   sequence_opening_bench

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/memory/host_copy_engine.h"
#include "cpp/program/capture.h"
#include "cpp/program/checkpoint_placement.h"
#include "cpp/program/copy_polling.h"
#include "cpp/program/sequence_opening.h"

namespace ninfer {
namespace {

constexpr std::int64_t kTokens = 240000;  // whole pages
constexpr std::int64_t kGrowth = 4096;
constexpr int kRepeats = 300;

ContextSizes sizes() {
    ContextSizes sizes;
    sizes.kv_pages = 262144 / kPageTokens;
    sizes.page_bytes = 6 * KvLayerLayout{KvStorage::kBf16, 2, 256}.layer_bytes();
    sizes.image_bytes = std::size_t{20} << 20;
    sizes.lanes = 2;
    sizes.checkpoint_slots = 4;
    sizes.host_bytes = static_cast<std::int64_t>(4000 * sizes.page_bytes);
    sizes.max_context = 262144;
    sizes.vocab_size = 248320;
    return sizes;
}

// A sequence that has computed this many tokens, as far as the stores can tell.
SequenceHandle computed(ContextState& state, std::int64_t tokens) {
    const SequenceHandle handle = open_root(state, {.tokens = tokens}).value();
    Sequence& sequence = state.sequences.at(handle);
    std::vector<std::int32_t> ids(static_cast<std::size_t>(tokens));
    std::iota(ids.begin(), ids.end(), 0);
    const bool done = state.stores.ledgers().append(sequence.ledger, {ids, {}, TokenOrigin::kPrompt}).has_value() &&
                      state.stores.kv().map(sequence.kv, tokens).has_value() &&
                      state.stores.kv().commit(sequence.kv, tokens).has_value() &&
                      state.stores.images().commit(sequence.image).has_value();
    NINFER_ASSERT(done, "no room");
    sequence.length = tokens;
    sequence.computed = tokens;
    return handle;
}

CheckpointHandle endpoint(const ContextState& state, OwnerHandle owner) {
    return state.owners.find(owner).value()->checkpoints.back();
}

// The fastest and the median of many runs of two calls that undo each other.
template <typename Do, typename Undo>
void report(const ThreadPool& pool, const char* what, Do&& forward, const char* undoing, Undo&& back) {
    std::vector<double> there;
    std::vector<double> again;
    for (int i = 0; i < kRepeats; ++i) {
        there.push_back(bench::best_seconds(pool, 1, forward) * 1e6);
        again.push_back(bench::best_seconds(pool, 1, back) * 1e6);
    }
    std::sort(there.begin(), there.end());
    std::sort(again.begin(), again.end());
    const std::size_t middle = there.size() / 2;
    std::printf("%-44s %8.2f us, median %8.2f us\n", what, there.front(), there[middle]);
    std::printf("%-44s %8.2f us, median %8.2f us\n", undoing, again.front(), again[middle]);
}

void run(const ThreadPool& pool) {
    ContextState state(sizes(), std::make_unique<HostCopyEngine>());
    OwnerHandle owner = finish(state, computed(state, kTokens), {}).value();
    SequenceHandle sequence;
    const auto close = [&] { static_cast<void>(close_sequence(state, sequence)); };
    report(
        pool, "root of 4,096 tokens", [&] { sequence = open_root(state, {.tokens = kGrowth}).value(); }, "  close it",
        close);
    report(
        pool, "fork of 240,000 tokens",
        [&] { sequence = open_from(state, {endpoint(state, owner)}, {.tokens = kTokens + kGrowth}).value(); },
        "  close it", close);
    report(
        pool, "move of 240,000 tokens",
        [&] {
            const SequenceSource source{endpoint(state, owner), SourceUse::kConsume, {}};
            sequence = open_from(state, source, {.tokens = kTokens + kGrowth}).value();
        },
        "  finish it", [&] { owner = finish(state, sequence, {}).value(); });
    report(
        pool, "start copies of 240,000 tokens to Host",
        [&] { NINFER_ASSERT_LT(0, start_copy(state, endpoint(state, owner), Tier::kHost).value()); },
        "  take them back",
        [&] {
            static_cast<void>(cancel_copies(state, endpoint(state, owner)));
            poll_copies(state, 0);
        });
    static_cast<void>(start_copy(state, endpoint(state, owner), Tier::kHost));
    report(
        pool, "poll 3,751 open copies, nothing moves", [&] { poll_copies(state, 0); }, "  again",
        [&] { poll_copies(state, 0); });
    std::printf("bookkeeping %.0f KiB, of it ledgers %.0f KiB\n", static_cast<double>(state.bookkeeping_bytes()) / 1024,
                static_cast<double>(state.stores.ledgers().bookkeeping_bytes()) / 1024);
}

}  // namespace
}  // namespace ninfer

int main() {
    ninfer::bench::print_machine();
    const ninfer::ThreadPool pool(1);
    ninfer::run(pool);
    return 0;
}
