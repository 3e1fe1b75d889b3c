#include "tests/contract/device_memory_contract.h"
#include "tests/sim/store_world.h"

namespace ninfer::testing_support {

struct MakeSimMemory {
    std::unique_ptr<DeviceMemory> make(std::size_t bytes) { return std::make_unique<sim::SimMemory>(bytes); }
};
INSTANTIATE_TYPED_TEST_SUITE_P(Sim, DeviceMemoryContract, MakeSimMemory);

}  // namespace ninfer::testing_support
