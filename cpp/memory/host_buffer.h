#pragma once

// One anonymous, zero-filled, page-aligned mapping; move-only owner. Large ones ask for transparent huge pages. Memory
// becomes resident when it is first touched. Throws OutOfMemoryError.

#include <cstddef>
#include <utility>

namespace ninfer {

class HostBuffer {
   public:
    HostBuffer() = default;
    explicit HostBuffer(std::size_t bytes);
    ~HostBuffer();
    HostBuffer(HostBuffer&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    HostBuffer& operator=(HostBuffer&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }

    std::byte* data() noexcept { return data_; }
    const std::byte* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return bytes_; }

   private:
    std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace ninfer
