#include "cpp/memory/host_memory.h"

#include <cstring>

#include "cpp/base/assert.h"

namespace ninfer {

void HostMemory::zero(std::size_t offset, std::size_t bytes) {
    NINFER_ASSERT_LE(offset, size());
    NINFER_ASSERT_LE(bytes, size() - offset);
    if (bytes > 0) std::memset(data() + offset, 0, bytes);
}

}  // namespace ninfer
