#include "cpp/state/state_image_store.h"

#include "cpp/base/assert.h"

namespace ninfer {

StateImageStore::StateImageStore(DeviceMemory& memory, const ImageStoreSize& size, HostTier& host)
    : host_(&host), memory_(&memory), size_(size), blocks_per_image_(host.blocks_for(size.image_bytes)) {
    NINFER_ASSERT_LT(std::size_t{0}, size.image_bytes);
    NINFER_ASSERT_LE(0, size.active_slots);
    NINFER_ASSERT_LE(0, size.checkpoint_slots);
    const std::int64_t slots = size.active_slots + size.checkpoint_slots;
    NINFER_ASSERT_LE(static_cast<std::size_t>(slots) * size.image_bytes, memory.size());
    for (std::int64_t slot = slots - 1; slot >= 0; --slot) free_slots_.push_back(static_cast<std::int32_t>(slot));
}

Result<ImageId, Refusal> StateImageStore::open() {
    if (const auto room = check_active_slot(); !room) return room.error();
    StateImage image;
    image.epoch = ++last_epoch_;
    const ImageId made = insert_active(image);
    memory_->zero(static_cast<std::size_t>(images_.at(made).slot) * size_.image_bytes, size_.image_bytes);
    return made;
}

Result<ImageId, Refusal> StateImageStore::fork(ImageId id) {
    const auto found = find_frozen(id);
    if (!found) return found.error();
    if (!found.value()->on_device()) return Refusal{RefusalKind::kNotOnDevice, 1, 0};
    if (const auto room = check_active_slot(); !room) return room.error();
    StateImage image;
    image.epoch = found.value()->epoch;
    image.source = id;
    pin(id);
    return insert_active(image);
}

Result<ImageId, Refusal> StateImageStore::consume(ImageId id) {
    const auto found = find_frozen(id);
    if (!found) return found.error();
    const StateImage& source = *found.value();
    if (!source.on_device()) return Refusal{RefusalKind::kNotOnDevice, 1, 0};
    if (source.references > 1) return Refusal{RefusalKind::kShared, 1, source.references};
    if (source.pins > 0) return Refusal{RefusalKind::kPinned, 0, source.pins};
    if (const auto room = check_active_slot(); !room) return room.error();
    StateImage image = images_.erase(id);
    host_->release(image.host);
    image.active = true;
    --checkpoint_slots_used_;
    ++active_slots_used_;
    return images_.insert(image);
}

Result<ImageId, Refusal> StateImageStore::restore(ImageId id) {
    const auto found = find_frozen(id);
    if (!found) return found.error();
    if (!found.value()->on_host()) return Refusal{RefusalKind::kNoReplica, static_cast<std::int64_t>(Tier::kHost), -1};
    if (const auto room = check_active_slot(); !room) return room.error();
    StateImage image;
    image.epoch = found.value()->epoch;
    image.source = id;
    image.unsettled = true;
    pin(id);
    return insert_active(image);
}

Result<Nothing, Refusal> StateImageStore::commit(ImageId id) {
    const auto found = find_active(id);
    if (!found) return found.error();
    StateImage& image = images_.at(id);
    if (image.unsettled) return Refusal{RefusalKind::kUnsettled, 0, 1};
    if (image.borrows()) unpin(image.source);
    image.source = ImageId{};
    image.epoch = ++last_epoch_;
    return Nothing{};
}

Result<ImageId, Refusal> StateImageStore::freeze(ImageId id) {
    if (const auto own = check_own_bytes(id); !own) return own.error();
    const std::int32_t pins = images_.at(id).pins;
    if (pins > 0) return Refusal{RefusalKind::kPinned, 0, pins};
    if (checkpoint_slots_free() < 1) return Refusal{RefusalKind::kNoImageSlots, 1, checkpoint_slots_free()};
    StateImage frozen;
    frozen.epoch = images_.at(id).epoch;
    frozen.slot = images_.at(id).slot;
    frozen.pins = 1;  // the active image reads it until its next commit
    ++checkpoint_slots_used_;
    const ImageId made = images_.insert(frozen);
    StateImage& active = images_.at(id);
    active.slot = pop_slot();
    active.source = made;
    return made;
}

Result<Nothing, Refusal> StateImageStore::finish(ImageId id) {
    if (const auto own = check_own_bytes(id); !own) return own.error();
    if (checkpoint_slots_free() < 1) return Refusal{RefusalKind::kNoImageSlots, 1, checkpoint_slots_free()};
    images_.at(id).active = false;
    --active_slots_used_;
    ++checkpoint_slots_used_;
    return Nothing{};
}

Result<Nothing, Refusal> StateImageStore::retain(ImageId id) {
    const auto found = find_frozen(id);
    if (!found) return found.error();
    ++images_.at(id).references;
    return Nothing{};
}

Result<Nothing, Refusal> StateImageStore::release(ImageId id) {
    const auto found = images_.find(id);
    if (!found) return found.error();
    StateImage& image = *found.value();
    if (image.references > 1) {
        --image.references;
        return Nothing{};
    }
    if (image.pins > 0) return Refusal{RefusalKind::kPinned, 0, image.pins};
    if (image.source != ImageId{}) unpin(image.source);
    host_->release(image.host);
    if (image.active) {
        free_slots_.push_back(image.slot);
        --active_slots_used_;
    } else if (image.on_device()) {
        give_back_checkpoint_slot(image.slot);
    }
    images_.erase(id);
    return Nothing{};
}

Result<Nothing, Refusal> StateImageStore::drop(ImageId id, Tier tier) {
    const auto found = find_frozen(id);
    if (!found) return found.error();
    StateImage& image = images_.at(id);
    if (tier == Tier::kDevice ? !image.on_device() : !image.on_host())
        return Refusal{RefusalKind::kNoReplica, static_cast<std::int64_t>(tier), -1};
    if (!image.on_device() || !image.on_host()) return Refusal{RefusalKind::kLastReplica, 1, 0};
    if (image.pins > 0) return Refusal{RefusalKind::kPinned, 0, image.pins};
    if (tier == Tier::kHost) {
        host_->release(image.host);
    } else {
        give_back_checkpoint_slot(image.slot);
        image.slot = StateImage::kNotOnDevice;
    }
    return Nothing{};
}

const std::byte* StateImageStore::read(ImageId id) {
    const StateImage& image = images_.at(id);
    NINFER_ASSERT(image.active && !image.unsettled, "a unit reads an image that is frozen or not there yet");
    return slot_data(image.borrows() ? images_.at(image.source).slot : image.slot);
}

std::byte* StateImageStore::write(ImageId id) {
    const StateImage& image = images_.at(id);
    NINFER_ASSERT(image.active && !image.unsettled, "a unit writes an image that is frozen or not there yet");
    return slot_data(image.slot);
}

void StateImageStore::for_each(FunctionRef<void(ImageId, const StateImage&)> visit) const { images_.for_each(visit); }

std::byte* StateImageStore::slot_data(std::int32_t slot) noexcept {
    NINFER_ASSERT_LE(0, slot);
    NINFER_ASSERT_LT(slot, size_.active_slots + size_.checkpoint_slots);
    return memory_->data() + static_cast<std::size_t>(slot) * size_.image_bytes;
}

Result<const StateImage*, Refusal> StateImageStore::find_frozen(ImageId id) const {
    const auto found = images_.find(id);
    if (found && found.value()->active) return Refusal{RefusalKind::kActive, 0, 1};
    return found;
}

Result<const StateImage*, Refusal> StateImageStore::find_active(ImageId id) const {
    const auto found = images_.find(id);
    if (found && !found.value()->active) return Refusal{RefusalKind::kFrozen, 1, 0};
    return found;
}

// Whether the active image's content is in its own slot.
Result<Nothing, Refusal> StateImageStore::check_own_bytes(ImageId id) const {
    const auto found = find_active(id);
    if (!found) return found.error();
    if (found.value()->source != ImageId{}) return Refusal{RefusalKind::kUnsettled, 0, 1};
    return Nothing{};
}

Result<Nothing, Refusal> StateImageStore::check_active_slot() const {
    if (active_slots_free() < 1) return Refusal{RefusalKind::kNoImageSlots, 1, active_slots_free()};
    return Nothing{};
}

ImageId StateImageStore::insert_active(StateImage image) {
    image.active = true;
    image.slot = pop_slot();
    ++active_slots_used_;
    return images_.insert(image);
}

// There is a slot for everything that the two counts allow.
std::int32_t StateImageStore::pop_slot() {
    NINFER_ASSERT(!free_slots_.empty(), "the slots in use are more than those that are counted");
    const std::int32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
}

void StateImageStore::pin(ImageId id) { ++images_.at(id).pins; }

void StateImageStore::unpin(ImageId id) {
    StateImage& image = images_.at(id);
    NINFER_ASSERT_LE(1, image.pins);
    --image.pins;
}

void StateImageStore::mark_copying(ImageId id, bool copying) {
    StateImage& image = images_.at(id);
    NINFER_ASSERT_EQ(image.copying, !copying);
    image.copying = copying;
}

Result<std::int32_t, Refusal> StateImageStore::take_checkpoint_slot() {
    if (checkpoint_slots_free() < 1) return Refusal{RefusalKind::kNoImageSlots, 1, checkpoint_slots_free()};
    ++checkpoint_slots_used_;
    return pop_slot();
}

void StateImageStore::give_back_checkpoint_slot(std::int32_t slot) {
    NINFER_ASSERT_LE(1, checkpoint_slots_used_);
    --checkpoint_slots_used_;
    free_slots_.push_back(slot);
}

void StateImageStore::publish_on_device(ImageId id, std::int32_t slot) {
    StateImage& image = images_.at(id);
    NINFER_ASSERT(!image.on_device(), "an image gets a second Device replica");
    image.slot = slot;
}

void StateImageStore::publish_on_host(ImageId id, BlockList blocks, std::uint64_t epoch) {
    StateImage& image = images_.at(id);
    NINFER_ASSERT(!image.on_host(), "an image gets a second Host replica");
    NINFER_ASSERT_EQ(blocks.count, blocks_per_image_);
    image.host = blocks;
    image.host_epoch = epoch;
}

ImageId StateImageStore::publish_snapshot(std::uint64_t epoch, BlockList blocks) {
    NINFER_ASSERT_EQ(blocks.count, blocks_per_image_);
    StateImage image;
    image.epoch = epoch;
    image.host = blocks;
    image.host_epoch = epoch;
    return images_.insert(image);
}

void StateImageStore::settle(ImageId id) {
    StateImage& image = images_.at(id);
    NINFER_ASSERT(image.unsettled, "a settled image is settled again");
    unpin(image.source);
    image.source = ImageId{};
    image.unsettled = false;
}

}  // namespace ninfer
