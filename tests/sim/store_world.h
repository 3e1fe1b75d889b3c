#pragma once

// The stores under test, put together small enough that every refusal is common: a few pages, slots and blocks.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/memory/device_memory.h"
#include "cpp/state/host_tier.h"
#include "cpp/state/paged_kv_store.h"
#include "cpp/state/replica_copies.h"
#include "cpp/state/state_image_store.h"
#include "tests/sim/faulty_copy_engine.h"
#include "tests/sim/sim_random.h"

namespace ninfer::sim {

// A token's keys and values are 8 bytes here, so a page is 512.
inline constexpr std::size_t kTokenBytes = sizeof(std::uint64_t);
inline constexpr std::size_t kPageBytes = 64 * kTokenBytes;

struct WorldSize {
    int pages = 0;
    std::size_t block_bytes = 0;
    int host_blocks = 0;
    std::size_t image_bytes = 0;  // 0: a model without recurrent layers
    int active_slots = 0;
    int checkpoint_slots = 0;
    std::size_t window_bytes = CopyEngine::kDecodingBudgetBytes;  // that the copy engine gets between polls

    int blocks_per_page() const { return static_cast<int>((kPageBytes + block_bytes - 1) / block_bytes); }
    int blocks_per_image() const { return static_cast<int>((image_bytes + block_bytes - 1) / block_bytes); }

    static WorldSize draw(SimRandom& random);
};

// Device memory on the heap, garbage at first, so that an out-of-bounds access and a missing zero are found.
class SimMemory final : public DeviceMemory {
   public:
    explicit SimMemory(std::size_t bytes);
    std::byte* data() noexcept override { return data_; }
    std::size_t size() const noexcept override { return bytes_; }
    void zero(std::size_t offset, std::size_t bytes) override;

   private:
    static constexpr std::size_t kAlignment = 64;

    std::size_t bytes_;
    std::unique_ptr<std::byte[]> owned_;
    std::byte* data_;
};

class StoreWorld {
   public:
    StoreWorld(const WorldSize& size, std::uint64_t engine_seed, FaultyCopyEngine::Faults faults);

    const WorldSize& size() const { return size_; }
    FaultyCopyEngine& engine() { return engine_; }
    PagedKvStore& pages() { return pages_; }
    bool has_images() const { return images_ != nullptr; }
    StateImageStore& images() { return *images_; }
    ReplicaCopies& copies() { return copies_; }
    HostTier& host() { return host_; }

   private:
    WorldSize size_;
    SimMemory page_memory_;
    SimMemory image_memory_;
    SimMemory host_memory_;
    FaultyCopyEngine engine_;
    HostTier host_;
    PagedKvStore pages_;
    std::unique_ptr<StateImageStore> images_;
    ReplicaCopies copies_;
};

}  // namespace ninfer::sim
