// All stores checked together with the open copies; used and capacity; fingerprints and size.

#include "cpp/base/assert.h"
#include "cpp/state/replica_copies.h"

namespace ninfer {

UsedVector ReplicaCopies::used() const {
    return {.device_pages = pages_->device().pages_taken(),
            .device_pages_reserved = pages_->device().pages_reserved(),
            .image_slots_active = images_ == nullptr ? 0 : images_->active_slots_used(),
            .image_slots_checkpoint = images_ == nullptr ? 0 : images_->checkpoint_slots_used(),
            .host_blocks = host_->blocks_used()};
}

CapacityVector ReplicaCopies::capacity() const {
    return {.device_pages = pages_->device().pages_total(),
            .image_slots_active = images_ == nullptr ? 0 : images_->size().active_slots,
            .image_slots_checkpoint = images_ == nullptr ? 0 : images_->size().checkpoint_slots,
            .host_blocks = host_->blocks_total()};
}

void ReplicaCopies::add_holdings(const Copy& copy, PageHoldings& pages, ImageHoldings& images,
                                 std::vector<BlockList>& lists) const {
    if (copy.page != PageId{}) {
        pages.pins.push_back(copy.page);
        if (copy.tail != PageId{}) pages.pins.push_back(copy.tail);
        pages.copying.push_back(pages.pins.back());
    }
    if (copy.image != ImageId{}) {
        images.pins.push_back(copy.image);
        if (copy.restored != ImageId{}) images.pins.push_back(copy.restored);
        images.copying.push_back(images.pins.back());
    }
    if (copy.kind == CopyKind::kPageToDevice) pages.device_pages.push_back(copy.device);
    if (copy.kind == CopyKind::kImageToDevice) images.slots.push_back(copy.device);
    if (!copy.host.empty()) lists.push_back(copy.host);
}

void ReplicaCopies::check_invariants() const {
    PageHoldings pages;
    ImageHoldings images;
    std::vector<BlockList> lists;
    std::int64_t waiting = 0;
    open_.for_each([&](CopyId, const Copy& copy) {
        add_holdings(copy, pages, images, lists);
        waiting += copy.ticket == CopyTicket{} ? 1 : 0;
    });
    NINFER_ASSERT_EQ(waiting, waiting_count_);
    for (const Copy& copy : draining_) add_holdings(copy, pages, images, lists);
    pages_->check_invariants(pages);
    pages_->add_host_lists(lists);
    if (images_ != nullptr) {
        images_->check_invariants(images);
        images_->add_host_lists(lists);
    }
    host_->check_invariants(lists);
}

std::uint64_t ReplicaCopies::fingerprint() const {
    Fingerprint fingerprint;
    const auto add = [](Fingerprint& print, const Copy& copy) {
        print.add(static_cast<int>(copy.kind));
        print.add(copy.ticket.value);
        print.add(copy.space.value);
        print.add(copy.page.value);
        print.add(copy.tail.value);
        print.add(copy.image.value);
        print.add(copy.restored.value);
        print.add(copy.epoch);
        print.add(copy.coverage);
        print.add(copy.device);
        print.add(copy.host.head);
        print.add(copy.host.count);
        print.add(copy.bytes);
    };
    open_.add_to(fingerprint, add);
    for (const Copy& copy : draining_) add(fingerprint, copy);
    for (const CopyId copy : waiting_) fingerprint.add(copy.value);
    return fingerprint.value();
}

std::uint64_t ReplicaCopies::fingerprint_of_all() const {
    Fingerprint fingerprint;
    fingerprint.add(this->fingerprint());
    fingerprint.add(pages_->fingerprint());
    if (images_ != nullptr) fingerprint.add(images_->fingerprint());
    host_->add_to(fingerprint);
    return fingerprint.value();
}

std::size_t ReplicaCopies::bookkeeping_bytes() const {
    return open_.memory_bytes() + draining_.capacity() * sizeof(Copy) + segments_.capacity() * sizeof(CopySegment) +
           (waiting_.size() + in_flight_.capacity()) * sizeof(CopyId);
}

}  // namespace ninfer
