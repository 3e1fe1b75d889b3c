#include "tests/sim/image_operations.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/sim/candidates.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

const ModelImage* find_image(const SimContext& context, ImageId id) {
    const auto found = context.model.images.find(id.value);
    return found == context.model.images.end() ? nullptr : &found->second;
}

Expected stale_image(const SimContext& context, ImageId id) {
    if (find_image(context, id) != nullptr) return {};
    return context.model.image_handles.stale(id.value);
}

Expected not_frozen(const SimContext& context, ImageId id) {
    const ModelImage* image = find_image(context, id);
    if (image == nullptr) return stale_image(context, id);
    if (image->active) return Refusal{kActive, 0, 1};
    return {};
}

Expected not_active(const SimContext& context, ImageId id) {
    const ModelImage* image = find_image(context, id);
    if (image == nullptr) return stale_image(context, id);
    if (!image->active) return Refusal{kFrozen, 1, 0};
    return {};
}

// Active, and its bytes are its own.
Expected not_own(const SimContext& context, ImageId id) {
    if (const Expected no = not_active(context, id)) return no;
    if (find_image(context, id)->source != 0) return Refusal{kUnsettled, 0, 1};
    return {};
}

Expected no_active_slot(const SimContext& context) {
    if (context.model.active_slots_free() == 0) return Refusal{kNoImageSlots, 1, 0};
    return {};
}

Expected no_checkpoint_slot(const SimContext& context) {
    if (context.model.checkpoint_slots_free() == 0) return Refusal{kNoImageSlots, 1, 0};
    return {};
}

void born(SimContext& context, ImageId id, const ModelImage& image) {
    context.model.image_handles.born(id.value);
    context.model.images.emplace(id.value, image);
}

void expect_bytes(std::uint64_t value, const std::byte* found, std::size_t count, const char* what) {
    std::vector<std::byte> bytes(count);
    fill_image(value, bytes.data(), count);
    if (std::memcmp(bytes.data(), found, count) != 0) throw SimFailure(std::string(what) + " holds foreign bytes");
}

}  // namespace

void fill_image(std::uint64_t value, std::byte* bytes, std::size_t count) {
    for (std::size_t i = 0; i < count; i += sizeof value) {
        const std::uint64_t word = value == 0 ? 0 : mix(value + i);
        std::memcpy(bytes + i, &word, std::min(sizeof word, count - i));
    }
}

void open_image(SimContext& context) {
    context.tell("open image");
    const auto made = context.attempt(no_active_slot(context), [&] { return context.world.images().open(); });
    if (made) born(context, *made, {});
}

void fork_image(SimContext& context) {
    const bool elsewhere = context.random.percent(5);
    const ImageId id = context.draw_image(
        [&](const ModelImage& image) { return elsewhere ? is_frozen(image) && !image.on_device : can_fork(image); });
    context.tell("fork image %llx", shown(id.value));
    Expected expected = not_frozen(context, id);
    if (!expected && !find_image(context, id)->on_device) expected = Refusal{kNotOnDevice, 1, 0};
    if (!expected) expected = no_active_slot(context);
    const auto made = context.attempt(expected, [&] { return context.world.images().fork(id); });
    if (!made) return;
    const ModelImage source = *find_image(context, id);
    for (const auto& [key, other] : context.model.images)
        if (other.source == id.value && other.borrows()) context.count(Situation::kBorrowedTwice);
    born(context, *made, {.source = id.value, .epoch = source.epoch, .new_epoch = false, .value = source.value});
}

void consume_image(SimContext& context) {
    const ImageId id = context.random.percent(60) ? context.draw_image(can_consume) : context.draw_image(can_fork);
    context.tell("consume image %llx", shown(id.value));
    Expected expected = not_frozen(context, id);
    if (!expected) {
        const ModelImage& image = *find_image(context, id);
        const int pins = context.model.image_pins(id.value);
        if (!image.on_device)
            expected = Refusal{kNotOnDevice, 1, 0};
        else if (image.references > 1)
            expected = Refusal{kShared, 1, image.references};
        else if (pins > 0)
            expected = Refusal{kPinned, 0, pins};
        else
            expected = no_active_slot(context);
    }
    const auto made = context.attempt(expected, [&] { return context.world.images().consume(id); });
    if (!made) return;
    ModelImage image = *find_image(context, id);
    image.active = true;
    image.on_host = false;
    born(context, *made, image);
    context.model.end_image(id.value);
}

void restore_image(SimContext& context) {
    const ImageId id = context.draw_image(can_restore);
    context.tell("restore image %llx", shown(id.value));
    Expected expected = not_frozen(context, id);
    if (!expected && !find_image(context, id)->on_host) expected = Refusal{kNoReplica, 1, -1};
    if (!expected) expected = no_active_slot(context);
    const auto made = context.attempt(expected, [&] { return context.world.images().restore(id); });
    if (!made) return;
    const Key epoch = find_image(context, id)->epoch;  // equal epochs, equal bytes: those that will be there
    born(context, *made, {.unsettled = true, .source = id.value, .epoch = epoch, .new_epoch = false});
}

void run_image_unit(SimContext& context) {
    const bool any = context.random.percent(30);  // else none that is being copied: it would be outdated
    const ImageId id = context.draw_image([&](Key key, const ModelImage& image) {
        return can_compute(image) && (any || !context.model.image_copying(key));
    });
    context.tell("image unit %llx", shown(id.value));
    Expected expected = not_active(context, id);
    if (!expected && find_image(context, id)->unsettled) expected = Refusal{kUnsettled, 0, 1};
    const std::uint64_t value = context.random.next() | 1;
    if (!expected) {
        StateImageStore& images = context.world.images();
        const std::size_t bytes = context.world.size().image_bytes;
        const bool in_place = images.read(id) == images.write(id);
        expect_equal(!find_image(context, id)->borrows(), in_place, "a unit in place");
        expect_bytes(find_image(context, id)->value, images.read(id), bytes, "read()");
        fill_image(value, images.write(id), bytes);
    }
    if (!context.attempt(expected, [&] { return context.world.images().commit(id); })) return;
    ModelImage& image = context.model.images.at(id.value);
    image.source = 0;
    image.value = value;
    image.new_epoch = true;
}

void freeze_image(SimContext& context) {
    const ImageId id = context.draw_image(is_own);
    context.tell("freeze image %llx", shown(id.value));
    Expected expected = not_own(context, id);
    const int pins = context.model.image_pins(id.value);
    if (!expected && pins > 0) expected = Refusal{kPinned, 0, pins};
    if (!expected) expected = no_checkpoint_slot(context);
    const auto made = context.attempt(expected, [&] { return context.world.images().freeze(id); });
    if (!made) return;
    ModelImage& image = context.model.images.at(id.value);
    ModelImage frozen = image;
    frozen.active = false;
    image.source = made->value;
    born(context, *made, frozen);
}

void finish_image(SimContext& context) {
    const ImageId id = context.draw_image(is_own);
    context.tell("finish image %llx", shown(id.value));
    Expected expected = not_own(context, id);
    if (!expected) expected = no_checkpoint_slot(context);
    if (context.attempt(expected, [&] { return context.world.images().finish(id); }))
        context.model.images.at(id.value).active = false;
}

void retain_image(SimContext& context) {
    const ImageId id = context.draw_image(is_frozen);
    context.tell("retain image %llx", shown(id.value));
    if (context.attempt(not_frozen(context, id), [&] { return context.world.images().retain(id); }))
        ++context.model.images.at(id.value).references;
}

void release_image(SimContext& context) {
    const bool active = context.random.percent(30);
    release_image(context, context.draw_image([&](Key key, const ModelImage& image) {
        return image.active == active && context.model.image_pins(key) == 0;
    }));
}

void release_image(SimContext& context, ImageId id) {
    context.tell("release image %llx", shown(id.value));
    Expected expected = stale_image(context, id);
    if (!expected) {
        const int pins = context.model.image_pins(id.value);
        if (find_image(context, id)->references == 1 && pins > 0) expected = Refusal{kPinned, 0, pins};
    }
    if (!context.attempt(expected, [&] { return context.world.images().release(id); })) return;
    ModelImage& image = context.model.images.at(id.value);
    if (--image.references == 0) context.model.end_image(id.value);
}

void drop_image(SimContext& context) {
    const ImageId id =
        context.draw_image([&](Key key, const ModelImage& image) { return can_drop_image(context, key, image); });
    const Tier tier = context.random.percent(70) ? Tier::kDevice : Tier::kHost;
    context.tell("drop image %llx from tier %d", shown(id.value), static_cast<int>(tier));
    Expected expected = not_frozen(context, id);
    if (!expected) {
        const ModelImage& image = *find_image(context, id);
        const int pins = context.model.image_pins(id.value);
        if (!(tier == Tier::kDevice ? image.on_device : image.on_host))
            expected = Refusal{kNoReplica, static_cast<std::int64_t>(tier), -1};
        else if (!image.on_device || !image.on_host)
            expected = Refusal{kLastReplica, 1, 0};
        else if (pins > 0)
            expected = Refusal{kPinned, 0, pins};
    }
    if (!context.attempt(expected, [&] { return context.world.images().drop(id, tier); })) return;
    ModelImage& image = context.model.images.at(id.value);
    (tier == Tier::kDevice ? image.on_device : image.on_host) = false;
}

}  // namespace ninfer::sim
