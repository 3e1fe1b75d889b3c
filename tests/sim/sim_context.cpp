#include "tests/sim/sim_context.h"

#include <algorithm>
#include <cstdarg>
#include <cstdio>

namespace ninfer::sim {
namespace {

constexpr FaultyCopyEngine::Faults kFaulty{.fail_percent = 25, .delay_polls_most = 3};
constexpr FaultyCopyEngine::Faults kSlow{.fail_percent = 0, .delay_polls_most = 3};

}  // namespace

SimContext::SimContext(std::uint64_t seed, bool faults, CoverageTable& coverage)
    : random(seed),
      world(WorldSize::draw(random), random.next(), faults ? kFaulty : kSlow),
      model(world.size()),
      coverage_(coverage) {}

void SimContext::tell(const char* format, ...) {
    std::va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(story_, sizeof story_, format, arguments);
    va_end(arguments);
}

// A handle that went, one of a generation to come, one of a slot that never was, or none at all.
Key SimContext::forge(const HandleHistory& handles) {
    const auto slot = static_cast<Key>(random.below(static_cast<int>(handles.slots()) + 2));
    switch (random.below(4)) {
        case 0:
            return Key{1} << 32 | (Key{1} << 20) | slot;
        case 1:
            return Key{1} << 52 | slot;
        case 2:
            return slot;
        default:
            if (handles.dead().empty()) return 0;
            return handles.dead()[static_cast<std::size_t>(random.below(static_cast<int>(handles.dead().size())))];
    }
}

int SimContext::draw_frontier(int limit) {
    if (random.percent(6)) return limit + random.between(1, 70);
    const int any = random.below(limit + 1);
    switch (random.below(4)) {
        case 0:
            return limit;
        case 1:
            return any / 64 * 64;
        case 2:
            return std::clamp(any / 64 * 64 + random.between(-1, 1), 0, limit);
        default:
            return any;
    }
}

void SimContext::judge_refusal(const Expected& expected, const Refusal& found, std::uint64_t before) {
    if (!expected) throw SimFailure("expected to be done, found refused: " + found.message());
    if (found.kind != expected->kind || found.wanted != expected->wanted || found.found != expected->found)
        throw SimFailure("expected " + expected->message() + ", found " + found.message());
    if (world.copies().fingerprint_of_all() != before)
        throw SimFailure("refused, but something changed: " + found.message());
    if (counting_) coverage_.count_refused(operation_, found.kind);
}

}  // namespace ninfer::sim
