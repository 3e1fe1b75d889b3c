#pragma once

// Page groups of one KV pool on the device: a free list, and how many of the free ones are promised.
//
// Invariants: a device page is either free or taken; 0 <= reserved <= free. An unpromised page is one that is free beyond
// the reserved ones. No operation allocates heap memory.

#include <cstdint>
#include <vector>

#include "cpp/base/result.h"
#include "cpp/memory/device_memory.h"
#include "cpp/state/fingerprint.h"
#include "cpp/state/refusal.h"
#include "cpp/tensor/paged_kv_view.h"

namespace ninfer {

class DevicePagePool {
   public:
    // Page p lies at memory.data() + p · page_bytes. The memory outlives the pool.
    DevicePagePool(DeviceMemory& memory, std::size_t page_bytes, std::int64_t pages);

    KvPoolView view() noexcept { return {memory_->data(), page_bytes_}; }
    std::byte* data(std::int32_t page) noexcept;
    std::size_t page_bytes() const noexcept { return page_bytes_; }
    std::int64_t pages_total() const noexcept { return pages_total_; }
    std::int64_t pages_taken() const noexcept { return pages_total_ - std::ssize(free_); }
    std::int64_t pages_reserved() const noexcept { return reserved_; }
    std::int64_t pages_unpromised() const noexcept { return std::ssize(free_) - reserved_; }

    void reserve(std::int64_t pages);      // at most pages_unpromised()
    void unreserve(std::int64_t pages);    // at most pages_reserved()
    std::int32_t take_reserved();          // turns one reserved page into a taken one
    Result<std::int32_t, Refusal> take();  // kNoPages
    void give_back(std::int32_t page);

    // `taken` holds each taken page once.
    void check_invariants(const std::vector<std::int32_t>& taken) const;
    void add_to(Fingerprint& fingerprint) const;
    std::size_t bookkeeping_bytes() const { return free_.capacity() * sizeof(std::int32_t); }

   private:
    std::int32_t pop();

    DeviceMemory* memory_;
    std::size_t page_bytes_;
    std::int64_t pages_total_;
    std::vector<std::int32_t> free_;
    std::int64_t reserved_ = 0;
};

}  // namespace ninfer
