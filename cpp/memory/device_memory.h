#pragma once

// One block of a backend's compute memory. Stores hand out pieces of it and never touch its bytes themselves: they move
// by a copy engine, and become zero here.

#include <cstddef>

namespace ninfer {

class DeviceMemory {
   public:
    virtual ~DeviceMemory() = default;

    // Aligned to 64 bytes at least; an address of the device, which the processor may not be able to read.
    virtual std::byte* data() noexcept = 0;
    virtual std::size_t size() const noexcept = 0;
    // [offset, offset + bytes) is zero for everything that is computed or copied from now on.
    virtual void zero(std::size_t offset, std::size_t bytes) = 0;
};

}  // namespace ninfer
