#include "tests/sim/store_simulation.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <numeric>
#include <vector>

#include "tests/sim/candidates.h"
#include "tests/sim/copy_operations.h"
#include "tests/sim/image_operations.h"
#include "tests/sim/sim_context.h"
#include "tests/sim/space_operations.h"
#include "tests/sim/store_checker.h"
#include "tests/sim/world_loop.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

constexpr int kStepsPerWorld = 1000;
constexpr int kStepsPerLongWorld = 10'000;  // of every twentieth world: what fragments has time to
constexpr int kPollsToDrain = 10'000;

struct Operation {
    const char* name;
    int weight;
    bool of_images;
    void (*run)(SimContext&);
    bool (*useful)(SimContext&);  // whether it has anything to work on
};

constexpr Operation kOperations[] = {
    {"space.open", 15, false, open_space, has_pages},
    {"space.map", 60, false, map_space, any_space<can_grow>},
    {"space.unit", 200, false, run_unit, any_space<can_write>},
    {"space.commit_wrongly", 18, false, commit_wrongly, any_space<has_written>},
    {"space.fork", 40, false, fork_space, any_space_with_room<can_branch>},
    {"space.consume", 40, false, consume_space, any_space_with_room<can_branch>},
    {"space.freeze", 60, false, freeze_space, any_space<can_freeze>},
    {"space.finish", 35, false, finish_space, any_space<has_written>},
    {"space.share", 15, false, share_space, any_space<can_branch>},
    {"space.release", 60, false, release_space, many_spaces},
    {"space.ask", 8, false, ask_space, any_space<is_settled>},
    {"page.drop", 90, false, drop_page, any_page<can_drop>},
    {"image.open", 12, true, open_image, has_slots},
    {"image.fork", 25, true, fork_image, any_image_with_slot<can_fork>},
    {"image.consume", 70, true, consume_image, any_image_with_slot<can_consume>},
    {"image.restore", 50, true, restore_image, any_image_with_slot<can_restore>},
    {"image.unit", 40, true, run_image_unit, any_image<can_compute>},
    {"image.freeze", 45, true, freeze_image, any_image_with_checkpoint_slot<is_own>},
    {"image.finish", 30, true, finish_image, any_image_with_checkpoint_slot<is_own>},
    {"image.retain", 25, true, retain_image, any_image<is_frozen>},
    {"image.release", 50, true, release_image, many_images},
    {"image.drop", 150, true, drop_image, any_image<can_drop_image>},
    {"copy.start_page", 130, false, start_page, any_page<can_start_page>},
    {"copy.start_tail", 80, false, start_tail, any_space<can_start_tail>},
    {"copy.start_image", 120, true, start_image, any_image<can_start_image>},
    {"copy.start_snapshot", 15, true, start_snapshot, any_image<can_start_snapshot>},
    {"copy.start_restore", 80, true, start_restore, any_image<can_start_restore>},
    {"copy.poll", 130, false, poll_copies, any_job},
    {"copy.status", 5, false, ask_status, any_copy<is_copy>},
    {"copy.publish", 120, false, publish_copy, any_copy<has_ended>},
    {"copy.cancel", 25, false, cancel_copy, any_copy<is_copy>},
};

constexpr RefusalKind kKinds[] = {kStaleHandle,    kNoPages,      kOverReservation, kNoImageSlots, kNoHostBlocks,
                                  kBeyondFrontier, kBackwards,    kNotMapped,       kNotOnDevice,  kNoReplica,
                                  kLastReplica,    kAlreadyThere, kPinned,          kShared,       kFrozen,
                                  kActive,         kUnsettled,    kCopyInFlight,    kCopyFailed,   kOutdatedCopy};

// Where the simulation is, for a failure and for an assertion of the stores, which ends the process.
struct Place {
    SimOptions options;
    std::int64_t world = 0;
    std::int64_t step = 0;
    const SimContext* context = nullptr;
};
Place place;

void print_place() {
    std::fprintf(stderr, "ninfer_sim: seed %llu, world %lld, step %lld: %s\n",
                 static_cast<unsigned long long>(place.options.seed), static_cast<long long>(place.world),
                 static_cast<long long>(place.step), place.context == nullptr ? "" : place.context->story());
    std::fprintf(stderr,
                 "repeat it with: ninfer_sim --scope stores --seed %llu --steps %lld --faults %s --replay %lld\n",
                 static_cast<unsigned long long>(place.options.seed), static_cast<long long>(place.options.steps),
                 place.options.faults ? "on" : "off", static_cast<long long>(place.world));
}

// An assertion of the stores ends the process: here, in the thread that failed, so that printing is safe enough.
extern "C" void print_place_at_abort(int) {
    if (place.context != nullptr) std::fprintf(stderr, "the model:\n%s", place.context->model.text().c_str());
    print_place();
}

// Each world does some things more often than others, so that together they get into more corners than any one mix would.
std::vector<int> draw_weights(SimContext& context) {
    constexpr int kFactors[] = {1, 4, 4, 12};
    std::vector<int> weights;
    for (const Operation& operation : kOperations) {
        const bool possible = !operation.of_images || context.world.has_images();
        weights.push_back(possible ? operation.weight * kFactors[context.random.below(4)] : 0);
    }
    return weights;
}

int draw_operation(SimContext& context, const std::vector<int>& weights) {
    const int sum = std::accumulate(weights.begin(), weights.end(), 0);
    for (;;) {
        int left = context.random.below(sum);
        std::size_t chosen = 0;
        while (left >= weights[chosen]) left -= weights[chosen++];
        if (kOperations[chosen].useful(context) || context.random.percent(4)) return static_cast<int>(chosen);
    }
}

template <typename Map>
std::vector<Key> keys_of(const Map& map) {
    std::vector<Key> keys;
    for (const auto& [key, item] : map) keys.push_back(key);
    return keys;
}

template <typename Item>
void shuffle(SimRandom& random, std::vector<Item>& items) {
    for (int i = static_cast<int>(items.size()) - 1; i > 0; --i)
        std::swap(items[static_cast<std::size_t>(i)], items[static_cast<std::size_t>(random.below(i + 1))]);
}

// Ends everything in any order that pins allow; nothing may be left.
void tear_down(SimContext& context) {
    context.stop_counting();
    for (const Key copy : keys_of(context.model.copies)) cancel_copy(context, CopyId{copy});
    for (int i = 0; i < kPollsToDrain && !context.model.draining.empty(); ++i) poll_copies(context, kPageBytes);
    check_stores(context);
    while (!context.model.spaces.empty() || !context.model.images.empty()) {
        auto spaces = keys_of(context.model.spaces);
        shuffle(context.random, spaces);
        for (const Key space : spaces) release_space(context, SpaceId{space});
        auto images = keys_of(context.model.images);
        shuffle(context.random, images);
        for (const Key image : images) release_image(context, ImageId{image});
        check_stores(context);
    }
    if (!(context.world.copies().used() == UsedVector{})) throw SimFailure("something is left of an empty world");
}

// Returns the steps done, at most steps_left.
std::int64_t run_world(const SimOptions& options, std::int64_t world, std::int64_t steps_left,
                       CoverageTable& coverage) {
    SimContext context(mix(options.seed) ^ mix(static_cast<std::uint64_t>(world) + 1), options.faults, coverage);
    place = {options, world, 0, &context};
    const std::vector<int> weights = draw_weights(context);
    const bool prints = options.replay_world.has_value();
    const std::int64_t steps =
        std::min<std::int64_t>(world % 20 == 19 ? kStepsPerLongWorld : kStepsPerWorld, steps_left);
    try {
        for (; place.step < steps; ++place.step) {
            const int operation = draw_operation(context, weights);
            context.begin(operation);
            kOperations[operation].run(context);
            if (prints) std::printf("%lld: %s\n", static_cast<long long>(place.step), context.story());
            check_stores(context);
        }
        tear_down(context);
    } catch (...) {
        std::fprintf(stderr, "the model:\n%s", context.model.text().c_str());
        print_place();
        place.context = nullptr;
        throw;
    }
    place.context = nullptr;
    return steps;
}

CoverageTable::Cases cases(bool faults) {
    CoverageTable::Cases all;
    for (const Operation& operation : kOperations) all.operations.emplace_back(operation.name);
    all.kinds.assign(std::begin(kKinds), std::end(kKinds));
    all.situations = situation_names();
    if (faults) return all;
    std::erase(all.kinds, kCopyFailed);
    for (int kind = 0; kind < kCopyKinds; ++kind) {
        const int failed = situation_of(static_cast<CopyKind>(kind), CopyEnding::kCancelledFailed);
        all.situations[static_cast<std::size_t>(failed)].clear();
    }
    return all;
}

}  // namespace

int simulate_stores(const SimOptions& options) {
    CoverageTable coverage(cases(options.faults));
    std::signal(SIGABRT, print_place_at_abort);
    return run_worlds(options, coverage, [&](std::int64_t world, std::int64_t steps) {
        return run_world(options, world, steps, coverage);
    });
}

}  // namespace ninfer::sim
