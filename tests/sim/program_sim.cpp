#include "tests/sim/program_sim.h"

#include <cstdarg>
#include <cstdio>

namespace ninfer::sim {
namespace {

constexpr int kFailPercent = 16;
constexpr int kDelayPollsMost = 2;

ContextSizes draw_sizes(SimRandom& random) {
    ContextSizes sizes;
    sizes.kv_pages = random.percent(15) ? random.between(20, 32) : random.between(4, 18);
    sizes.page_bytes = kPageBytes;
    const int image_blocks = random.between(1, 3);
    const std::size_t image_bytes = kPageBytes * static_cast<std::size_t>(image_blocks) - 8;
    sizes.image_bytes = random.percent(38) ? 0 : image_bytes;
    sizes.lanes = random.between(1, 5);
    sizes.checkpoint_slots = random.percent(8) ? 0 : random.between(1, 5);
    const int host_pages = random.percent(8) ? 0 : random.between(3, 30);
    sizes.host_bytes = host_pages * static_cast<std::int64_t>(kPageBytes);
    sizes.max_context = random.between(3, 8) * 64;
    sizes.vocab_size = 64;
    return sizes;
}

template <typename Born, typename Died>
void compare(std::set<Key>& known, const std::vector<Key>& keys, Born&& born, Died&& died) {
    std::set<Key> now(keys.begin(), keys.end());
    for (const Key key : now)
        if (!known.contains(key)) born(key);
    for (const Key key : known)
        if (!now.contains(key)) died(key);
    known = std::move(now);
}

}  // namespace

std::vector<CoverageTable::OperationCase> part_operations() {
    using enum RefusalKind;
    // Of an admission; of its sequence, or that of a capture or finish.
    constexpr RefusalSet kOfSource =
        refusals({kCopyInFlight, kBeyondFrontier, kBackwards, kMismatch, kActive, kShared});
    constexpr RefusalSet kOfSequence =
        refusals({kStaleHandle, kCopyFailed, kUnsettled, kCopyInFlight, kBeyondFrontier, kOverReservation});
    constexpr RefusalSet kOfSerial = refusals({kCopyInFlight, kUnsettled});
    constexpr RefusalSet kOfStores = refusals({kNoPages, kNoImageSlots, kNoHostBlocks, kPinned});
    // Between a plan and its start, without the revision: a sequence goes on, or a copy takes what it needs.
    constexpr RefusalSet kTakenMeanwhile = refusals({kOverReservation, kNoImageSlots, kNoHostBlocks});
    return {
        {"session.verify", refusals({kStaleHandle})},
        {"session.open", kOfSource | kOfSequence | refusals({kTransactionOpen, kBatchSize, kProtected})},
        {"session.identity"},
        {"session.maximal"},
        {"session.list"},
        {"session.degrade", refusals({kStaleHandle, kBackwards, kNoTargets})},
        {"session.assess"},
        {"session.assess_many"},
        {"session.baseline"},
        {"session.seal", kOfStores | kOfSerial | refusals({kOverContext, kNoLane})},
        {"session.start",
         kOfStores | kOfSerial |
             refusals({kTransactionOpen, kStaleRevision, kOverReservation, kStaleHandle, kProtected}),
         kTakenMeanwhile},
    };
}

ProgramSim::ProgramSim(std::uint64_t seed, bool faults, CoverageTable& coverage)
    : random(seed),
      sizes(draw_sizes(random)),
      fail_percent(faults ? kFailPercent : 0),
      engine(new FaultyCopyEngine(random.next(), {fail_percent, kDelayPollsMost})),
      state(std::make_unique<ContextState>(sizes, std::unique_ptr<CopyEngine>(engine))),
      model(sizes),
      session(*state),
      coverage_(coverage) {}

void ProgramSim::tell(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(story_, sizeof story_, format, arguments);
    va_end(arguments);
}

// One that went, one of a generation to come, one of a slot that never was, or none at all.
Key ProgramSim::forge(const std::vector<Key>& dead) {
    switch (random.below(4)) {
        case 0:
            return Key{1} << 52 | static_cast<Key>(random.below(4));
        case 1:
            return Key{1} << 32 | Key{1} << 20;
        case 2:
            return 0;
        default:
            return dead.empty() ? 0 : dead[static_cast<std::size_t>(random.below(static_cast<int>(dead.size())))];
    }
}

Expected ProgramSim::no_sequence(Key key) const {
    if (find_sequence(key) != nullptr) return {};
    return lanes.stale(key);
}

Expected ProgramSim::no_checkpoint(Key key) const {
    if (find_checkpoint(key) != nullptr) return {};
    return checkpoint_handles.stale(key);
}

Expected ProgramSim::no_owner(Key key) const {
    if (find_owner(key) != nullptr) return {};
    return owner_handles.stale(key);
}

Expected ProgramSim::transaction_open() const {
    if (!model.transition) return {};
    return Refusal{RefusalKind::kTransactionOpen, 0, 1};
}

void ProgramSim::judge_refusal(const Expected& expected, const Refusal& found, std::uint64_t before) {
    if (!expected) throw SimFailure("expected to be done, found refused: " + found.message());
    // How many pins there are is counted per run, which the model does not know.
    const bool same_values = found.wanted == expected->wanted && found.found == expected->found;
    if (found.kind != expected->kind || (!same_values && found.kind != RefusalKind::kPinned))
        throw SimFailure("expected " + expected->message() + ", found " + found.message());
    if (state->fingerprint() != before) throw SimFailure("refused, but something changed: " + found.message());
    if (counting_) coverage_.count_refused(operation_, found.kind);
}

void ProgramSim::note_handles() {
    compare(
        known_owners_, keys_of(model.owners), [&](Key key) { owner_handles.born(key); },
        [&](Key key) { owner_handles.died(key); });
    compare(
        known_checkpoints_, keys_of(model.checkpoints), [&](Key key) { checkpoint_handles.born(key); },
        [&](Key key) { checkpoint_handles.died(key); });
    compare(
        known_sequences_, keys_of(model.sequences),
        [&](Key key) { lanes.generations[static_cast<std::uint32_t>(key)] = static_cast<std::uint32_t>(key >> 32); },
        [&](Key key) { lanes.dead.push_back(key); });
}

std::vector<std::uint64_t> values_of_tokens(const TokenList& tokens, int frontier) {
    std::vector<std::uint64_t> values;
    std::uint64_t chain = 1;
    for (int i = 0; i < frontier; ++i) {
        chain = mix(chain ^ static_cast<std::uint64_t>(tokens[static_cast<std::size_t>(i)].id + 1));
        values.push_back(chain);
    }
    return values;
}

// All of them follow from the tokens; 0 is the state before the first one.
std::uint64_t value_behind(const TokenList& tokens, int frontier) {
    return frontier == 0 ? 0 : values_of_tokens(tokens, frontier).back();
}

IdentityHeader header_of(int salt) {
    IdentityHeader header;
    if (salt != 0) header.salt = "another";
    return header;
}

}  // namespace ninfer::sim
