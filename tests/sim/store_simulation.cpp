#include "tests/sim/store_simulation.h"

#include <algorithm>
#include <vector>

#include "tests/sim/candidates.h"
#include "tests/sim/copy_operations.h"
#include "tests/sim/fragmentation.h"
#include "tests/sim/image_operations.h"
#include "tests/sim/scope.h"
#include "tests/sim/sim_context.h"
#include "tests/sim/space_operations.h"
#include "tests/sim/store_checker.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

constexpr int kStepsPerWorld = 1000;
constexpr int kStepsPerLongWorld = 10'000;  // of every twentieth world: what fragments has time to
constexpr int kPollsToDrain = 10'000;
// Seven kinds of copies, each ended in five ways, take turns in the same steps: more than this they cannot all have.
constexpr std::int64_t kSituationsPerMillionSteps = 500;

using StoreOperation = Operation<SimContext>;

bool has_images(SimContext& context) { return context.world.has_images(); }

// Refusals as the comments of cpp/state name them; everything that takes a handle may find it stale.
constexpr StoreOperation kOperations[] = {
    {"space.open", 15, refusals({kNoPages}), open_space, has_pages},
    {"space.map", 80, refusals({kStaleHandle, kFrozen, kUnsettled, kOverReservation}), map_space, any_space<can_grow>},
    {"space.unit", 200, refusals({kStaleHandle, kFrozen, kUnsettled}), run_unit, any_space<can_write>},
    {"space.commit_wrongly", 18, refusals({kStaleHandle, kFrozen, kUnsettled, kBackwards, kNotMapped}), commit_wrongly,
     any_space<has_written>},
    {"space.fork", 40, refusals({kStaleHandle, kActive, kBeyondFrontier, kOverReservation, kNoPages, kNotOnDevice}),
     fork_space, any_space_with_room<can_branch>},
    {"space.consume", 75, refusals({kStaleHandle, kActive, kOverReservation, kNoPages, kNotOnDevice, kPinned}),
     consume_space, can_consume_space},
    {"space.freeze", 130, refusals({kStaleHandle, kFrozen, kUnsettled, kOverReservation}), freeze_space,
     any_space<can_freeze>},
    {"space.finish", 35, refusals({kStaleHandle, kFrozen, kUnsettled}), finish_space, any_space<has_written>},
    {"space.share", 20, refusals({kStaleHandle, kActive, kBeyondFrontier}), share_space, can_share},
    {"space.release", 60, refusals({kStaleHandle, kPinned}), release_space, can_release},
    {"space.fragment", 12, refusals({kPinned}), fragment_space, any_long_space},
    {"space.facts", 5, refusals({kStaleHandle}), ask_facts, any_space<is_settled>},
    {"space.valid", 5, refusals({kStaleHandle}), ask_validity, any_space<is_settled>},
    {"space.capture_shape", 6, refusals({kStaleHandle, kFrozen, kUnsettled}), ask_capture_shape, any_space<is_settled>},
    {"page.drop", 120, refusals({kStaleHandle, kNoReplica, kLastReplica, kPinned, kActive}), drop_page,
     any_page<can_drop>},
    {"image.open", 12, refusals({kNoImageSlots}), open_image, has_slots, has_images},
    {"image.fork", 35, refusals({kStaleHandle, kActive, kNotOnDevice, kNoImageSlots}), fork_image,
     any_image_with_slot<can_fork>, has_images},
    {"image.consume", 70, refusals({kStaleHandle, kActive, kNotOnDevice, kShared, kPinned, kNoImageSlots}),
     consume_image, any_image_with_slot<can_consume>, has_images},
    {"image.restore", 80, refusals({kStaleHandle, kActive, kNoReplica, kNoImageSlots}), restore_image,
     any_image_with_slot<can_restore>, has_images},
    {"image.unit", 40, refusals({kStaleHandle, kFrozen, kUnsettled}), run_image_unit, any_image<can_compute>,
     has_images},
    {"image.freeze", 45, refusals({kStaleHandle, kFrozen, kUnsettled, kPinned, kNoImageSlots}), freeze_image,
     any_image_with_checkpoint_slot<is_own>, has_images},
    {"image.finish", 45, refusals({kStaleHandle, kFrozen, kUnsettled, kNoImageSlots}), finish_image,
     any_image_with_checkpoint_slot<is_own>, has_images},
    {"image.retain", 25, refusals({kStaleHandle, kActive}), retain_image, any_image<is_frozen>, has_images},
    {"image.release", 50, refusals({kStaleHandle, kPinned}), release_image, many_images, has_images},
    {"image.drop", 200, refusals({kStaleHandle, kActive, kNoReplica, kLastReplica, kPinned}), drop_image,
     any_image<can_drop_image>, has_images},
    {"copy.start_page", 230, refusals({kStaleHandle, kAlreadyThere, kCopyInFlight, kActive, kNoPages, kNoHostBlocks}),
     start_page, any_page_to_copy},
    {"copy.start_tail", 80, refusals({kStaleHandle, kAlreadyThere, kCopyInFlight}), start_tail,
     any_space<can_start_tail>},
    {"copy.start_image", 320,
     refusals({kStaleHandle, kActive, kAlreadyThere, kCopyInFlight, kNoImageSlots, kNoHostBlocks}), start_image,
     any_image_to_copy, has_images},
    {"copy.start_snapshot", 80, refusals({kStaleHandle, kFrozen, kUnsettled, kCopyInFlight, kNoHostBlocks}),
     start_snapshot, any_image_to_snapshot, has_images},
    {"copy.start_restore", 150, refusals({kStaleHandle, kAlreadyThere, kCopyInFlight}), start_restore,
     any_image<can_start_restore>, has_images},
    {"copy.poll", 130, 0, poll_copies, any_job},
    {"copy.status", 5, refusals({kStaleHandle}), ask_status, any_copy<is_copy>},
    {"copy.publish", 120, refusals({kStaleHandle, kCopyInFlight, kCopyFailed, kOutdatedCopy}), publish_copy,
     any_copy<is_done>},
    {"copy.cancel", 130, refusals({kStaleHandle}), cancel_copy, any_copy<has_begun>},
};

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

std::int64_t steps_of(std::int64_t world) { return world % 20 == 19 ? kStepsPerLongWorld : kStepsPerWorld; }

CoverageTable::Cases cases(bool faults) {
    CoverageTable::Cases all;
    for (const StoreOperation& operation : kOperations) all.operations.push_back({operation.name, operation.refusals});
    for (const std::string& name : situation_names()) all.situations.push_back({name, kSituationsPerMillionSteps});
    if (faults) return all;
    for (auto& operation : all.operations) operation.refusals &= ~bit_of(kCopyFailed);
    for (int kind = 0; kind < kCopyKinds; ++kind) {
        const int failed = situation_of(static_cast<CopyKind>(kind), CopyEnding::kCancelledFailed);
        all.situations[static_cast<std::size_t>(failed)].per_million_steps = CoverageTable::kNever;
    }
    return all;
}

}  // namespace

int simulate_stores(const SimOptions& options) {
    CoverageTable coverage(cases(options.faults));
    const Scope<SimContext> scope{"stores", kOperations, steps_of, check_stores, tear_down};
    return simulate(scope, options, coverage);
}

}  // namespace ninfer::sim
