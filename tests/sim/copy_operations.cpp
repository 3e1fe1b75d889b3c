#include "tests/sim/copy_operations.h"

#include <algorithm>
#include <vector>

#include "tests/sim/candidates.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

// Mostly one to which something can be copied; to the device more often, for that needs something on Host alone.
Tier draw_tier(SimContext& context, bool (*can_copy_to)(SimContext&, Tier)) {
    const bool any = context.random.percent(15);
    if (any) return context.random.percent(50) ? Tier::kDevice : Tier::kHost;
    if (can_copy_to(context, Tier::kDevice) && context.random.percent(85)) return Tier::kDevice;
    return Tier::kHost;
}

bool engine_works_on(SimContext& context, const ModelCopy& copy) {
    return context.world.engine().outcome(copy.ticket) == CopyStatus::kPending;
}

CopyEnding ending_of(SimContext& context, const ModelCopy& copy) {
    const CopyStatus outcome = context.world.engine().outcome(copy.ticket);
    if (outcome == CopyStatus::kDone) return CopyEnding::kCancelledDone;
    if (outcome == CopyStatus::kFailed) return CopyEnding::kCancelledFailed;
    return context.world.engine().moved(copy.ticket) > 0 ? CopyEnding::kCancelledMidway
                                                         : CopyEnding::kCancelledUntouched;
}

template <typename Wanted>
bool any_copy_is(const SimContext& context, Wanted&& wanted) {
    return std::ranges::any_of(context.model.copies, [&](const auto& item) { return wanted(item.second); });
}

// The copy was started: the model notes it under its handle, with the ticket that the stores got for it.
void started(SimContext& context, CopyId id, ModelCopy copy) {
    context.model.copy_handles.born(id.value);
    const Copy& found = *context.world.copies().find(id).value();
    expect_equal(static_cast<int>(copy.kind), static_cast<int>(found.kind), "kind of a new copy");
    expect_equal(copy.bytes, found.bytes, "bytes of a new copy");
    copy.ticket = found.ticket;
    copy.start = ++context.model.copies_started;
    context.model.copies.emplace(id.value, copy);
}

Expected no_host_blocks(const SimContext& context, int needed) {
    const int free = context.model.blocks_free();
    if (needed > free) return Refusal{kNoHostBlocks, needed, free};
    return {};
}

Expected no_page_copy(const SimContext& context, PageId id, Tier tier) {
    const PageKey key = context.model.page_of(id.value);
    if (key == 0) return context.model.page_handles.stale(id.value);
    const ModelPage& page = context.model.pages.at(key);
    const auto there = static_cast<std::int64_t>(tier);
    if (tier == Tier::kDevice ? page.on_device : page.on_host) return Refusal{kAlreadyThere, there, there};
    if (context.model.copying(key)) return Refusal{kCopyInFlight, 0, 1};
    if (context.model.writable(key)) return Refusal{kActive, 0, 1};
    if (tier == Tier::kHost) return no_host_blocks(context, context.world.size().blocks_per_page());
    if (context.model.pages_free() == 0) return Refusal{kNoPages, 1, 0};
    return {};
}

Expected no_image_copy(const SimContext& context, ImageId id, Tier tier) {
    const auto found = context.model.images.find(id.value);
    if (found == context.model.images.end()) return context.model.image_handles.stale(id.value);
    const ModelImage& image = found->second;
    const auto there = static_cast<std::int64_t>(tier);
    if (image.active) return Refusal{kActive, 0, 1};
    if (tier == Tier::kDevice ? image.on_device : image.on_host) return Refusal{kAlreadyThere, there, there};
    if (context.model.image_copying(id.value)) return Refusal{kCopyInFlight, 0, 1};
    if (tier == Tier::kHost) return no_host_blocks(context, context.world.size().blocks_per_image());
    if (context.model.checkpoint_slots_free() == 0) return Refusal{kNoImageSlots, 1, 0};
    return {};
}

Expected no_snapshot(const SimContext& context, ImageId id) {
    const auto found = context.model.images.find(id.value);
    if (found == context.model.images.end()) return context.model.image_handles.stale(id.value);
    if (!found->second.active) return Refusal{kFrozen, 1, 0};
    if (found->second.source != 0) return Refusal{kUnsettled, 0, 1};
    if (context.model.image_copying(id.value)) return Refusal{kCopyInFlight, 0, 1};
    return no_host_blocks(context, context.world.size().blocks_per_image());
}

Expected no_publish(SimContext& context, CopyId id) {
    const auto found = context.model.copies.find(id.value);
    if (found == context.model.copies.end()) return context.model.copy_handles.stale(id.value);
    const ModelCopy& copy = found->second;
    const CopyStatus outcome = context.world.engine().outcome(copy.ticket);
    if (outcome == CopyStatus::kPending) return Refusal{kCopyInFlight, 0, 1};
    if (outcome == CopyStatus::kFailed) return Refusal{kCopyFailed, static_cast<std::int64_t>(copy.bytes), 0};
    if (copy.kind != CopyKind::kSnapshot) return {};
    const Key now = context.model.images.at(copy.image).epoch;
    if (now != copy.epoch)
        return Refusal{kOutdatedCopy, static_cast<std::int64_t>(copy.epoch), static_cast<std::int64_t>(now)};
    return {};
}

void settle_tail(SimContext& context, const ModelCopy& copy) {
    ModelSpace& space = context.model.spaces.at(copy.space);
    ModelPage& tail = context.model.pages.at(copy.tail);
    tail.coverage = space.frontier % 64;
    tail.values = context.model.pages.at(copy.page).values;
    tail.new_epoch = true;
    space.tail_source = 0;
}

void publish_in_model(SimContext& context, const ModelCopy& copy, ImageId made) {
    StoreModel& model = context.model;
    switch (copy.kind) {
        case CopyKind::kPageToHost:
            model.pages.at(copy.page).on_host = true;
            return;
        case CopyKind::kPageToDevice:
            model.pages.at(copy.page).on_device = true;
            return;
        case CopyKind::kTail:
            return settle_tail(context, copy);
        case CopyKind::kImageToHost:
            model.images.at(copy.image).on_host = true;
            return;
        case CopyKind::kImageToDevice:
            model.images.at(copy.image).on_device = true;
            return;
        case CopyKind::kSnapshot: {
            const ModelImage& source = model.images.at(copy.image);
            model.image_handles.born(made.value);
            model.images.emplace(made.value, ModelImage{.active = false,
                                                        .on_device = false,
                                                        .on_host = true,
                                                        .epoch = source.epoch,
                                                        .new_epoch = false,
                                                        .value = source.value});
            return;
        }
        case CopyKind::kRestore: {
            ModelImage& image = model.images.at(copy.restored);
            image.value = model.images.at(copy.image).value;
            image.unsettled = false;
            image.source = 0;
            return;
        }
    }
}

}  // namespace

void start_page(SimContext& context) {
    const Tier tier = draw_tier(context, can_copy_page_to);
    const PageId id = context.draw_page([&](PageKey key, const ModelPage& page) {
        return can_start_page(context, key, page) && page.on_device == (tier == Tier::kHost);
    });
    context.tell("start page %llx to tier %d", shown(id.value), static_cast<int>(tier));
    const auto made =
        context.attempt(no_page_copy(context, id, tier), [&] { return context.world.copies().start_page(id, tier); });
    if (!made) return;
    const CopyKind kind = tier == Tier::kHost ? CopyKind::kPageToHost : CopyKind::kPageToDevice;
    const PageKey key = context.model.page_of(id.value);
    started(context, *made, {.kind = kind, .page = key, .bytes = kPageBytes});
}

void start_tail(SimContext& context) {
    const SpaceId id = context.draw_space([&](const ModelSpace& space) { return can_start_tail(context, space); });
    context.tell("start tail of %llx", shown(id.value));
    const auto found = context.model.spaces.find(id.value);
    Expected expected;
    PageKey tail = 0;
    if (found == context.model.spaces.end()) {
        expected = context.model.space_handles.stale(id.value);
    } else if (found->second.tail_source == 0) {
        expected = Refusal{kAlreadyThere, 0, 0};
    } else {
        tail = found->second.pages[static_cast<std::size_t>(found->second.frontier / 64)];
        if (context.model.copying(tail)) expected = Refusal{kCopyInFlight, 0, 1};
    }
    const auto made = context.attempt(expected, [&] { return context.world.copies().start_tail(id); });
    if (!made) return;
    started(context, *made,
            {.kind = CopyKind::kTail,
             .page = found->second.tail_source,
             .tail = tail,
             .space = id.value,
             .bytes = kPageBytes});
}

void start_image(SimContext& context) {
    const Tier tier = draw_tier(context, can_copy_image_to);
    const ImageId id = context.draw_image([&](Key key, const ModelImage& image) {
        return can_start_image(context, key, image) && image.on_device == (tier == Tier::kHost);
    });
    context.tell("start image %llx to tier %d", shown(id.value), static_cast<int>(tier));
    const auto made =
        context.attempt(no_image_copy(context, id, tier), [&] { return context.world.copies().start_image(id, tier); });
    if (!made) return;
    const CopyKind kind = tier == Tier::kHost ? CopyKind::kImageToHost : CopyKind::kImageToDevice;
    started(context, *made, {.kind = kind, .image = id.value, .bytes = context.world.size().image_bytes});
}

void start_snapshot(SimContext& context) {
    const ImageId id =
        context.draw_image([&](Key key, const ModelImage& image) { return can_start_snapshot(context, key, image); });
    context.tell("start snapshot of %llx", shown(id.value));
    const auto made =
        context.attempt(no_snapshot(context, id), [&] { return context.world.copies().start_snapshot(id); });
    if (!made) return;
    const Key epoch = context.model.images.at(id.value).epoch;
    started(
        context, *made,
        {.kind = CopyKind::kSnapshot, .image = id.value, .epoch = epoch, .bytes = context.world.size().image_bytes});
}

void start_restore(SimContext& context) {
    const ImageId id =
        context.draw_image([&](Key key, const ModelImage& image) { return can_start_restore(context, key, image); });
    context.tell("start restore of %llx", shown(id.value));
    const auto found = context.model.images.find(id.value);
    Expected expected;
    if (found == context.model.images.end())
        expected = context.model.image_handles.stale(id.value);
    else if (!found->second.unsettled)
        expected = Refusal{kAlreadyThere, 0, 0};
    else if (context.model.image_copying(id.value))
        expected = Refusal{kCopyInFlight, 0, 1};
    const auto made = context.attempt(expected, [&] { return context.world.copies().start_restore(id); });
    if (!made) return;
    started(context, *made,
            {.kind = CopyKind::kRestore,
             .image = found->second.source,
             .restored = id.value,
             .bytes = context.world.size().image_bytes});
}

void poll_copies(SimContext& context) {
    constexpr std::size_t kBudgets[] = {0, 50, 100, 200, 700, CopyEngine::kDecodingBudgetBytes};
    const std::size_t budget = kBudgets[context.random.below(6)];
    context.tell("poll %zu bytes", budget);
    poll_copies(context, budget);
    context.count_done();
}

void poll_copies(SimContext& context, std::size_t max_bytes) {
    StoreModel& model = context.model;
    // What waits is handed over in the order of the starts, unless it was cancelled.
    std::vector<ModelCopy*> waiting;
    for (auto& [key, copy] : model.copies)
        if (copy.ticket == CopyTicket{}) waiting.push_back(&copy);
    std::ranges::sort(waiting, {}, &ModelCopy::start);
    std::uint64_t ticket = context.world.engine().submitted();
    context.world.copies().poll(max_bytes);
    expect_equal(max_bytes, context.world.engine().last_budget(), "bytes that the engine may move");
    for (ModelCopy* copy : waiting)
        if (ticket < context.world.engine().submitted()) copy->ticket = {++ticket};
    expect_equal(ticket, context.world.engine().submitted(), "copies that the engine got");
    std::erase_if(model.draining, [&](const ModelCopy& copy) {
        return copy.ticket == CopyTicket{} || !engine_works_on(context, copy);
    });
}

void ask_status(SimContext& context) {
    const CopyId id = context.draw_copy(is_copy);
    context.tell("status of copy %llx", shown(id.value));
    const auto found = context.model.copies.find(id.value);
    Expected expected;
    if (found == context.model.copies.end()) expected = context.model.copy_handles.stale(id.value);
    const auto status =
        context.attempt(expected, [&] { return context.world.copies().status(id); }, SimContext::Effect::kNone);
    if (!status) return;
    const CopyStatus outcome = context.world.engine().outcome(found->second.ticket);
    expect_equal(static_cast<int>(outcome), static_cast<int>(*status), "status of a copy");
}

void publish_copy(SimContext& context) {
    const bool any = context.random.percent(25);
    const CopyId id = context.draw_copy([&](const ModelCopy& copy) { return any || is_done(context, copy); });
    context.tell("publish copy %llx", shown(id.value));
    const auto made = context.attempt(no_publish(context, id), [&] { return context.world.copies().publish(id); });
    if (!made) return;
    const ModelCopy copy = context.model.copies.at(id.value);
    expect_equal(copy.kind == CopyKind::kSnapshot, made->value != 0, "a publication that makes an image");
    context.count(copy.kind, CopyEnding::kPublished);
    publish_in_model(context, copy, *made);
    context.model.end_copy(id.value, false);
}

// One that was left midway, where there is one, for that passes quickly; images, for there are more pages than those; and
// rarely one that has not begun.
void cancel_copy(SimContext& context) {
    const bool of_image = context.random.percent(45);
    const bool fails = context.random.percent(50);
    const CopyEnding order[] = {CopyEnding::kCancelledMidway,
                                fails ? CopyEnding::kCancelledFailed : CopyEnding::kCancelledDone,
                                fails ? CopyEnding::kCancelledDone : CopyEnding::kCancelledFailed};
    CopyEnding ending = CopyEnding::kCancelledUntouched;
    const auto is_wanted = [&](const ModelCopy& copy) {
        return (!of_image || copy.of_image()) && ending_of(context, copy) == ending;
    };
    if (!context.random.percent(12))
        for (const CopyEnding next : order) {
            ending = next;
            if (context.random.percent(85) && any_copy_is(context, is_wanted)) break;
        }
    cancel_copy(context, context.draw_copy(is_wanted));
}

void cancel_copy(SimContext& context, CopyId id) {
    context.tell("cancel copy %llx", shown(id.value));
    const auto cancel = [&] { return context.world.copies().cancel(id); };
    const auto found = context.model.copies.find(id.value);
    if (found == context.model.copies.end()) {
        static_cast<void>(context.attempt(context.model.copy_handles.stale(id.value), cancel));
        return;
    }
    // The engine may stop it at once, but what it held is given back by a poll.
    const CopyEnding ending = ending_of(context, found->second);
    const bool drains = engine_works_on(context, found->second);
    if (!context.attempt({}, cancel)) return;
    context.count(found->second.kind, ending);
    context.model.end_copy(id.value, drains);
}

}  // namespace ninfer::sim
