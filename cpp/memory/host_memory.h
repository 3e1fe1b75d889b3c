#pragma once

// The device memory of the CPU backend: a host buffer. Throws OutOfMemoryError.

#include "cpp/memory/device_memory.h"
#include "cpp/memory/host_buffer.h"

namespace ninfer {

class HostMemory final : public DeviceMemory {
   public:
    explicit HostMemory(std::size_t bytes) : buffer_(bytes) {}

    std::byte* data() noexcept override { return buffer_.data(); }
    std::size_t size() const noexcept override { return buffer_.size(); }
    void zero(std::size_t offset, std::size_t bytes) override;

   private:
    HostBuffer buffer_;
};

}  // namespace ninfer
