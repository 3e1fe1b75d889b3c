#include "cpp/state/device_page_pool.h"

#include "cpp/base/assert.h"

namespace ninfer {

DevicePagePool::DevicePagePool(DeviceMemory& memory, std::size_t page_bytes, std::int64_t pages)
    : memory_(&memory), page_bytes_(page_bytes), pages_total_(pages) {
    NINFER_ASSERT_LE(0, pages);
    NINFER_ASSERT_LE(pages, std::int64_t{INT32_MAX});  // page ids are int32
    NINFER_ASSERT_LE(static_cast<std::size_t>(pages) * page_bytes, memory.size());
    free_.reserve(static_cast<std::size_t>(pages));
    for (std::int64_t page = pages - 1; page >= 0; --page) free_.push_back(static_cast<std::int32_t>(page));
}

std::byte* DevicePagePool::data(std::int32_t page) noexcept {
    NINFER_ASSERT_LE(0, page);
    NINFER_ASSERT_LT(page, pages_total_);
    return memory_->data() + static_cast<std::size_t>(page) * page_bytes_;
}

void DevicePagePool::reserve(std::int64_t pages) {
    NINFER_ASSERT_LE(0, pages);
    NINFER_ASSERT_LE(pages, pages_unpromised());
    reserved_ += pages;
}

void DevicePagePool::unreserve(std::int64_t pages) {
    NINFER_ASSERT_LE(0, pages);
    NINFER_ASSERT_LE(pages, reserved_);
    reserved_ -= pages;
}

std::int32_t DevicePagePool::take_reserved() {
    NINFER_ASSERT_LE(1, reserved_);
    --reserved_;
    return pop();
}

Result<std::int32_t, Refusal> DevicePagePool::take() {
    if (pages_unpromised() < 1) return Refusal{RefusalKind::kNoPages, 1, pages_unpromised()};
    return pop();
}

std::int32_t DevicePagePool::pop() {
    NINFER_ASSERT(!free_.empty(), "a promised device page is not there");
    const std::int32_t page = free_.back();
    free_.pop_back();
    return page;
}

void DevicePagePool::give_back(std::int32_t page) {
    NINFER_ASSERT_LE(0, page);
    NINFER_ASSERT_LT(page, pages_total_);
    NINFER_ASSERT_LT(std::ssize(free_), pages_total_);
    free_.push_back(page);
}

void DevicePagePool::check_invariants(const std::vector<std::int32_t>& taken) const {
    NINFER_ASSERT_LE(0, reserved_);
    NINFER_ASSERT_LE(0, pages_unpromised());
    std::vector<bool> seen(static_cast<std::size_t>(pages_total_), false);
    const auto note = [&](std::int32_t page) {
        NINFER_ASSERT_LE(0, page);
        NINFER_ASSERT_LT(page, pages_total_);
        NINFER_ASSERT(!seen[static_cast<std::size_t>(page)], "a device page has two owners");
        seen[static_cast<std::size_t>(page)] = true;
    };
    for (const std::int32_t page : free_) note(page);
    for (const std::int32_t page : taken) note(page);
    NINFER_ASSERT_EQ(std::ssize(taken), pages_taken());
}

void DevicePagePool::add_to(Fingerprint& fingerprint) const {
    for (const std::int32_t page : free_) fingerprint.add(page);
    fingerprint.add(std::ssize(free_));
    fingerprint.add(reserved_);
}

}  // namespace ninfer
