// The invariants of state_image_store.h, recounted; its fingerprint and its size.

#include <unordered_map>

#include "cpp/base/assert.h"
#include "cpp/state/state_image_store.h"

namespace ninfer {

void StateImageStore::check_invariants(const ImageHoldings& copies) const {
    check_slots(copies);
    check_pins(copies);
    images_.for_each([&](ImageId, const StateImage& image) {
        NINFER_ASSERT(image.on_device() || image.on_host(), "an image has no replica");
        NINFER_ASSERT_LE(1, image.references);
        NINFER_ASSERT_LE(image.epoch, last_epoch_);
        if (image.on_host()) {
            NINFER_ASSERT_EQ(image.host.count, blocks_per_image_);
            NINFER_ASSERT_EQ(image.host_epoch, image.epoch);
        }
        if (!image.active) {
            NINFER_ASSERT(image.source == ImageId{} && !image.unsettled, "a frozen image waits for another one");
            return;
        }
        NINFER_ASSERT_EQ(image.references, 1);
        NINFER_ASSERT(image.on_device() && !image.on_host(), "an active image is not in its slot alone");
        if (image.source == ImageId{}) {
            NINFER_ASSERT(!image.unsettled, "an image waits for none");
            return;
        }
        const StateImage& source = images_.at(image.source);
        NINFER_ASSERT(!source.active, "an image borrows from an active one");
        NINFER_ASSERT_EQ(image.epoch, source.epoch);
        NINFER_ASSERT(image.unsettled ? source.on_host() : source.on_device(), "what an image reads is not there");
    });
}

void StateImageStore::check_slots(const ImageHoldings& copies) const {
    const std::int64_t slots = size_.active_slots + size_.checkpoint_slots;
    std::vector<bool> seen(static_cast<std::size_t>(slots), false);
    const auto note = [&](std::int32_t slot) {
        NINFER_ASSERT_LE(0, slot);
        NINFER_ASSERT_LT(slot, slots);
        NINFER_ASSERT(!seen[static_cast<std::size_t>(slot)], "an image slot has two owners");
        seen[static_cast<std::size_t>(slot)] = true;
    };
    for (const std::int32_t slot : free_slots_) note(slot);
    for (const std::int32_t slot : copies.slots) note(slot);
    std::int64_t active = 0;
    std::int64_t checkpoints = std::ssize(copies.slots);
    images_.for_each([&](ImageId, const StateImage& image) {
        if (!image.on_device()) return;
        note(image.slot);
        ++(image.active ? active : checkpoints);
    });
    NINFER_ASSERT_EQ(active, active_slots_used_);
    NINFER_ASSERT_EQ(checkpoints, checkpoint_slots_used_);
    NINFER_ASSERT_LE(active, size_.active_slots);
    NINFER_ASSERT_LE(checkpoints, size_.checkpoint_slots);
    NINFER_ASSERT_EQ(active + checkpoints + std::ssize(free_slots_), slots);
}

void StateImageStore::check_pins(const ImageHoldings& copies) const {
    std::unordered_map<std::uint64_t, std::int32_t> pins;
    std::int64_t copying = 0;
    for (const ImageId image : copies.pins) ++pins[image.value];
    images_.for_each([&](ImageId, const StateImage& image) {
        if (image.source != ImageId{}) ++pins[image.source.value];
        copying += image.copying ? 1 : 0;
    });
    images_.for_each([&](ImageId id, const StateImage& image) {
        const auto found = pins.find(id.value);
        NINFER_ASSERT_EQ(image.pins, found == pins.end() ? 0 : found->second);
    });
    for (const auto& [image, count] : pins) NINFER_ASSERT_EQ(images_.at(ImageId{image}).pins, count);
    NINFER_ASSERT_EQ(copying, std::ssize(copies.copying));
    for (const ImageId image : copies.copying) NINFER_ASSERT(images_.at(image).copying, "an open copy left no mark");
}

void StateImageStore::add_host_lists(std::vector<BlockList>& lists) const {
    images_.for_each([&](ImageId, const StateImage& image) {
        if (image.on_host()) lists.push_back(image.host);
    });
}

std::uint64_t StateImageStore::fingerprint() const {
    Fingerprint fingerprint;
    images_.add_to(fingerprint, [](Fingerprint& print, const StateImage& image) {
        print.add(image.epoch);
        print.add(image.source.value);
        print.add(image.host.head);
        print.add(image.host.count);
        print.add(image.host_epoch);
        print.add(image.slot);
        print.add(image.references);
        print.add(image.pins);
        print.add(image.active);
        print.add(image.unsettled);
        print.add(image.copying);
    });
    for (const std::int32_t slot : free_slots_) fingerprint.add(slot);
    fingerprint.add(active_slots_used_);
    fingerprint.add(checkpoint_slots_used_);
    fingerprint.add(last_epoch_);
    return fingerprint.value();
}

std::size_t StateImageStore::bookkeeping_bytes() const {
    return images_.memory_bytes() + free_slots_.capacity() * sizeof(std::int32_t);
}

}  // namespace ninfer
