#include "tests/sim/store_world.h"

#include <cstring>
#include <span>

#include "cpp/base/assert.h"

namespace ninfer::sim {

WorldSize WorldSize::draw(SimRandom& random) {
    constexpr std::size_t kBlocks[] = {kPageBytes, 256, 192};
    WorldSize size;
    size.pages = random.percent(20) ? random.between(24, 48) : random.between(3, 20);
    size.block_bytes = kBlocks[random.below(3)];
    size.host_blocks = random.percent(10) ? 0 : random.between(2, 40);
    size.image_bytes = random.percent(10) ? 0 : static_cast<std::size_t>(random.between(1, 6)) * 64 + 8;
    size.active_slots = random.between(1, 5);
    size.checkpoint_slots = random.percent(10) ? 0 : random.between(1, 6);
    if (random.percent(50)) size.window_bytes = static_cast<std::size_t>(random.below(3)) * kPageBytes;
    return size;
}

SimMemory::SimMemory(std::size_t bytes) : bytes_(bytes), owned_(new std::byte[bytes + kAlignment]) {
    void* place = owned_.get();
    std::size_t space = bytes + kAlignment;
    data_ = static_cast<std::byte*>(std::align(kAlignment, bytes, place, space));
    std::memset(owned_.get(), 0x5A, bytes + kAlignment);
}

void SimMemory::zero(std::size_t offset, std::size_t bytes) {
    NINFER_ASSERT_LE(offset, bytes_);
    NINFER_ASSERT_LE(bytes, bytes_ - offset);
    std::memset(data_ + offset, 0, bytes);
}

StoreWorld::StoreWorld(const WorldSize& size, std::uint64_t engine_seed, FaultyCopyEngine::Faults faults)
    : size_(size),
      page_memory_(static_cast<std::size_t>(size.pages) * kPageBytes),
      image_memory_(static_cast<std::size_t>(size.active_slots + size.checkpoint_slots) * size.image_bytes),
      host_memory_(static_cast<std::size_t>(size.host_blocks) * size.block_bytes),
      engine_(engine_seed, faults),
      host_(std::span(host_memory_.data(), host_memory_.size()), size.block_bytes),
      pages_(page_memory_, kPageBytes, size.pages, host_),
      images_(
          size.image_bytes == 0
              ? nullptr
              : std::make_unique<StateImageStore>(
                    image_memory_, ImageStoreSize{size.image_bytes, size.active_slots, size.checkpoint_slots}, host_)),
      copies_(pages_, images_.get(), host_, engine_, size.window_bytes) {}

}  // namespace ninfer::sim
