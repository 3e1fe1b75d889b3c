#include "cpp/state/replica_copies.h"

#include <utility>

#include "cpp/base/assert.h"
#include "cpp/state/page_count.h"

namespace ninfer {

namespace {

Refusal already_there(Tier tier) {
    return {RefusalKind::kAlreadyThere, static_cast<std::int64_t>(tier), static_cast<std::int64_t>(tier)};
}

constexpr Refusal kCopyIsOpen = {RefusalKind::kCopyInFlight, 0, 1};

}  // namespace

ReplicaCopies::ReplicaCopies(PagedKvStore& pages, StateImageStore* images, HostTier& host, CopyEngine& engine,
                             std::size_t window_bytes)
    : pages_(&pages), images_(images), host_(&host), engine_(&engine), window_bytes_(window_bytes) {}

Result<CopyId, Refusal> ReplicaCopies::start_page(PageId id, Tier destination) {
    const auto found = pages_->find(id);
    if (!found) return found.error();
    const LogicalPage& page = *found.value();
    if (const auto legal = check_page(page, destination); !legal) return legal.error();
    Copy copy;
    copy.kind = destination == Tier::kHost ? CopyKind::kPageToHost : CopyKind::kPageToDevice;
    copy.page = id;
    copy.epoch = page.epoch;
    copy.coverage = page.coverage;
    copy.bytes = pages_->device().page_bytes();
    if (const auto room = take_destination(copy); !room) return room.error();
    return begin(copy);
}

Result<Nothing, Refusal> ReplicaCopies::check_page(const LogicalPage& page, Tier destination) const {
    if (destination == Tier::kHost ? page.on_host() : page.on_device()) return already_there(destination);
    if (page.copying) return kCopyIsOpen;
    if (pages_->writable(page)) return Refusal{RefusalKind::kActive, 0, 1};
    return Nothing{};
}

Result<CopyId, Refusal> ReplicaCopies::start_tail(SpaceId id) {
    const auto found = pages_->find(id);
    if (!found) return found.error();
    const AddressSpace& space = *found.value();
    if (!space.unsettled()) return already_there(Tier::kDevice);
    Copy copy;
    copy.kind = CopyKind::kTail;
    copy.space = id;
    copy.page = space.tail_source;
    copy.tail = pages_->tail_of_copy(id);
    if (pages_->find(copy.tail).value()->copying) return kCopyIsOpen;
    copy.epoch = pages_->find(copy.page).value()->epoch;
    copy.coverage = pages_->find(copy.page).value()->coverage;
    copy.bytes = pages_->device().page_bytes();
    return begin(copy);
}

Result<CopyId, Refusal> ReplicaCopies::start_image(ImageId id, Tier destination) {
    NINFER_ASSERT(images_ != nullptr, "a model without recurrent layers has no images");
    const auto found = images_->find(id);
    if (!found) return found.error();
    const StateImage& image = *found.value();
    if (image.active) return Refusal{RefusalKind::kActive, 0, 1};
    if (destination == Tier::kHost ? image.on_host() : image.on_device()) return already_there(destination);
    if (image.copying) return kCopyIsOpen;
    Copy copy;
    copy.kind = destination == Tier::kHost ? CopyKind::kImageToHost : CopyKind::kImageToDevice;
    copy.image = id;
    copy.epoch = image.epoch;
    copy.bytes = images_->size().image_bytes;
    if (const auto room = take_destination(copy); !room) return room.error();
    return begin(copy);
}

Result<CopyId, Refusal> ReplicaCopies::start_snapshot(ImageId id) {
    NINFER_ASSERT(images_ != nullptr, "a model without recurrent layers has no images");
    const auto found = images_->find(id);
    if (!found) return found.error();
    const StateImage& image = *found.value();
    if (!image.active) return Refusal{RefusalKind::kFrozen, 1, 0};
    if (image.source != ImageId{}) return Refusal{RefusalKind::kUnsettled, 0, 1};
    if (image.copying) return kCopyIsOpen;
    Copy copy;
    copy.kind = CopyKind::kSnapshot;
    copy.image = id;
    copy.epoch = image.epoch;
    copy.bytes = images_->size().image_bytes;
    if (const auto room = take_destination(copy); !room) return room.error();
    return begin(copy);
}

Result<CopyId, Refusal> ReplicaCopies::start_restore(ImageId id) {
    NINFER_ASSERT(images_ != nullptr, "a model without recurrent layers has no images");
    const auto found = images_->find(id);
    if (!found) return found.error();
    const StateImage& image = *found.value();
    if (!image.unsettled) return already_there(Tier::kDevice);
    if (image.copying) return kCopyIsOpen;
    Copy copy;
    copy.kind = CopyKind::kRestore;
    copy.image = image.source;
    copy.restored = id;
    copy.epoch = image.epoch;
    copy.bytes = images_->size().image_bytes;
    return begin(copy);
}

Result<Nothing, Refusal> ReplicaCopies::take_destination(Copy& copy) {
    if (copy.kind == CopyKind::kPageToDevice || copy.kind == CopyKind::kImageToDevice) {
        const auto taken =
            copy.kind == CopyKind::kPageToDevice ? pages_->device_of_copies().take() : images_->take_checkpoint_slot();
        if (!taken) return taken.error();
        copy.device = taken.value();
        return Nothing{};
    }
    const auto taken = host_->allocate(host_->blocks_for(copy.bytes));
    if (!taken) return taken.error();
    copy.host = taken.value();
    return Nothing{};
}

CopyId ReplicaCopies::begin(Copy copy) {
    // Every open copy has room to drain, so that cancel allocates nothing.
    const auto copies = static_cast<std::size_t>(open_.size() + draining_copies() + 1);
    if (draining_.capacity() < copies) draining_.reserve(2 * copies);
    hold(copy, true);
    const CopyId id = open_.insert(copy);
    if (waiting_count_ == 0 && in_flight_bytes_ < window_bytes_) {
        hand_over(id);
    } else {
        waiting_.push_back(id);
        ++waiting_count_;
    }
    return id;
}

void ReplicaCopies::hand_over(CopyId id) {
    Copy& copy = open_.at(id);
    segments_.clear();
    append_segments(copy);
    copy.ticket = engine_->submit(segments_);
    in_flight_.push_back(id);
    in_flight_bytes_ += copy.bytes;
}

void ReplicaCopies::hand_over_waiting(std::size_t max_bytes) {
    in_flight_bytes_ = 0;
    std::erase_if(in_flight_, [&](CopyId id) {
        const auto found = open_.find(id);
        if (!found || status_of(*found.value()) != CopyStatus::kPending) return true;
        in_flight_bytes_ += found.value()->bytes;
        return false;
    });
    // So that those that were cancelled do not gather.
    if (std::ssize(waiting_) > 2 * waiting_count_)
        std::erase_if(waiting_, [&](CopyId id) { return !open_.find(id).has_value(); });
    // The oldest one may be all but done.
    const std::size_t oldest = in_flight_.empty() ? 0 : open_.at(in_flight_.front()).bytes;
    while (!waiting_.empty() && in_flight_bytes_ - oldest < max_bytes) {
        const CopyId next = waiting_.front();
        waiting_.pop_front();
        if (!open_.find(next)) continue;
        --waiting_count_;
        hand_over(next);
    }
}

void ReplicaCopies::append_segments(const Copy& copy) {
    const auto page_data = [&](std::int32_t page) { return pages_->device_of_copies().data(page); };
    switch (copy.kind) {
        case CopyKind::kPageToHost: {
            const std::int32_t source = pages_->find(copy.page).value()->device_page;
            return host_->append_to_host(page_data(source), copy.host, copy.bytes, segments_);
        }
        case CopyKind::kPageToDevice: {
            const BlockList& source = pages_->find(copy.page).value()->host;
            return host_->append_from_host(source, page_data(copy.device), copy.bytes, segments_);
        }
        case CopyKind::kTail: {
            const std::int32_t source = pages_->find(copy.page).value()->device_page;
            const std::int32_t destination = pages_->find(copy.tail).value()->device_page;
            segments_.push_back({page_data(destination), page_data(source), copy.bytes});
            return;
        }
        case CopyKind::kImageToHost:
        case CopyKind::kSnapshot: {
            const std::int32_t source = images_->find(copy.image).value()->slot;
            return host_->append_to_host(images_->slot_data(source), copy.host, copy.bytes, segments_);
        }
        case CopyKind::kImageToDevice:
        case CopyKind::kRestore: {
            const BlockList& source = images_->find(copy.image).value()->host;
            const bool restores = copy.kind == CopyKind::kRestore;
            const std::int32_t slot = restores ? images_->find(copy.restored).value()->slot : copy.device;
            return host_->append_from_host(source, images_->slot_data(slot), copy.bytes, segments_);
        }
    }
}

void ReplicaCopies::hold(const Copy& copy, bool held) {
    const auto hold_page = [&](PageId page) { held ? pages_->pin(page) : pages_->unpin(page); };
    const auto hold_image = [&](ImageId image) { held ? images_->pin(image) : images_->unpin(image); };
    if (copy.page != PageId{}) hold_page(copy.page);
    if (copy.tail != PageId{}) hold_page(copy.tail);
    if (copy.image != ImageId{}) hold_image(copy.image);
    if (copy.restored != ImageId{}) hold_image(copy.restored);
    // The mark is on what gets the replica; of a snapshot, which makes a new image, on its source.
    if (copy.page != PageId{}) pages_->mark_copying(copy.tail != PageId{} ? copy.tail : copy.page, held);
    if (copy.image != ImageId{}) images_->mark_copying(copy.restored != ImageId{} ? copy.restored : copy.image, held);
}

bool ReplicaCopies::poll(std::size_t max_bytes) {
    hand_over_waiting(max_bytes);
    engine_->poll(max_bytes);
    std::size_t kept = 0;
    for (Copy& copy : draining_) {
        if (copy.ticket != CopyTicket{} && engine_->status(copy.ticket) == CopyStatus::kPending)
            draining_[kept++] = copy;
        else
            end_draining(copy);
    }
    const bool drained = kept < draining_.size();
    draining_.resize(kept);
    return drained;
}

Result<CopyStatus, Refusal> ReplicaCopies::status(CopyId id) const {
    const auto found = open_.find(id);
    if (!found) return found.error();
    return status_of(*found.value());
}

CopyStatus ReplicaCopies::status_of(const Copy& copy) const {
    return copy.ticket == CopyTicket{} ? CopyStatus::kPending : engine_->status(copy.ticket);
}

Result<ImageId, Refusal> ReplicaCopies::publish(CopyId id) {
    const auto found = open_.find(id);
    if (!found) return found.error();
    const Copy& checked = *found.value();
    const CopyStatus status = status_of(checked);
    if (status == CopyStatus::kPending) return kCopyIsOpen;
    if (status == CopyStatus::kFailed)
        return Refusal{RefusalKind::kCopyFailed, static_cast<std::int64_t>(checked.bytes), 0};
    if (epoch_now(checked) != checked.epoch) {
        // Only an active image may have gone on: everything else that is pinned cannot change.
        NINFER_ASSERT_EQ(static_cast<int>(checked.kind), static_cast<int>(CopyKind::kSnapshot));
        return Refusal{RefusalKind::kOutdatedCopy, static_cast<std::int64_t>(checked.epoch),
                       static_cast<std::int64_t>(epoch_now(checked))};
    }
    if (checked.page != PageId{}) NINFER_ASSERT_EQ(checked.coverage, pages_->find(checked.page).value()->coverage);
    Copy copy = open_.erase(id);
    engine_->forget(copy.ticket);
    hold(copy, false);
    return make_replica(copy);
}

std::uint64_t ReplicaCopies::epoch_now(const Copy& copy) const {
    return copy.page != PageId{} ? pages_->find(copy.page).value()->epoch : images_->find(copy.image).value()->epoch;
}

ImageId ReplicaCopies::make_replica(Copy& copy) {
    switch (copy.kind) {
        case CopyKind::kPageToHost:
            pages_->publish_on_host(copy.page, copy.host, copy.epoch);
            break;
        case CopyKind::kPageToDevice:
            pages_->publish_on_device(copy.page, copy.device);
            break;
        case CopyKind::kTail:
            pages_->settle(copy.space);
            break;
        case CopyKind::kImageToHost:
            images_->publish_on_host(copy.image, copy.host, copy.epoch);
            break;
        case CopyKind::kImageToDevice:
            images_->publish_on_device(copy.image, copy.device);
            break;
        case CopyKind::kSnapshot:
            return images_->publish_snapshot(copy.epoch, copy.host);
        case CopyKind::kRestore:
            images_->settle(copy.restored);
            break;
    }
    return ImageId{};
}

Result<Nothing, Refusal> ReplicaCopies::cancel(CopyId id) {
    const auto found = open_.find(id);
    if (!found) return found.error();
    Copy copy = open_.erase(id);
    const bool pending = status_of(copy) == CopyStatus::kPending;
    if (copy.ticket == CopyTicket{})
        --waiting_count_;
    else
        engine_->cancel(copy.ticket);
    // Even if the engine has stopped at once: what the copy held is given back by a poll, which tells that it was.
    if (pending)
        draining_.push_back(copy);
    else
        end_draining(copy);
    return Nothing{};
}

// The engine has let go: what the copy held is free again.
void ReplicaCopies::end_draining(Copy& copy) {
    if (copy.ticket != CopyTicket{}) engine_->forget(copy.ticket);
    hold(copy, false);
    host_->release(copy.host);
    if (copy.device < 0) return;
    if (copy.kind == CopyKind::kPageToDevice)
        pages_->device_of_copies().give_back(copy.device);
    else
        images_->give_back_checkpoint_slot(copy.device);
}

}  // namespace ninfer
