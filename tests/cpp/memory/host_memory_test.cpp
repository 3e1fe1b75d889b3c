#include "cpp/memory/host_memory.h"

#include "tests/contract/device_memory_contract.h"

namespace ninfer::testing_support {

struct HostMemoryMaker {
    std::unique_ptr<DeviceMemory> make(std::size_t bytes) { return std::make_unique<HostMemory>(bytes); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Host, DeviceMemoryContract, HostMemoryMaker);

}  // namespace ninfer::testing_support
