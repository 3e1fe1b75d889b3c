#include "cpp/memory/host_buffer.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "cpp/base/assert.h"
#include "cpp/base/error.h"

namespace ninfer {

namespace {

constexpr std::size_t kHugePageBytes = std::size_t{2} << 20;

}  // namespace

HostBuffer::HostBuffer(std::size_t bytes) : bytes_(bytes) {
    if (bytes == 0) return;
    void* mapping = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapping == MAP_FAILED)
        throw OutOfMemoryError("cannot map " + std::to_string(bytes) + " bytes: " + std::strerror(errno));
    data_ = static_cast<std::byte*>(mapping);
    // Advice only: a kernel without huge pages serves the same memory in small ones.
    if (bytes >= 4 * kHugePageBytes) ::madvise(mapping, bytes, MADV_HUGEPAGE);
}

HostBuffer::~HostBuffer() {
    if (data_ == nullptr) return;
    const int result = ::munmap(data_, bytes_);
    NINFER_ASSERT_EQ(result, 0);
}

}  // namespace ninfer
