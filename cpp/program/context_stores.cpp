#include "cpp/program/context_stores.h"

#include <limits>
#include <new>
#include <string>
#include <utility>

#include "cpp/base/error.h"

namespace ninfer {

namespace {

std::size_t image_pool_bytes(const ContextSizes& sizes) {
    return static_cast<std::size_t>(sizes.lanes + sizes.checkpoint_slots) * sizes.image_bytes;
}

// Blocks of the Host tier have 31-bit numbers.
std::size_t host_bytes(const ContextSizes& sizes) {
    NINFER_ASSERT_LE(0, sizes.host_bytes);
    const auto bytes = static_cast<std::size_t>(sizes.host_bytes);
    const std::size_t blocks = bytes / HostTier::block_bytes_for(sizes.page_bytes);
    if (blocks > std::size_t{std::numeric_limits<std::int32_t>::max()})
        throw OutOfMemoryError("Host tier of " + std::to_string(bytes) + " bytes: more blocks than can be numbered");
    return bytes;
}

}  // namespace

ContextStores::ContextStores(const ContextSizes& sizes, std::unique_ptr<CopyEngine> engine) try
    : page_memory_(static_cast<std::size_t>(sizes.kv_pages) * sizes.page_bytes),
      image_memory_(image_pool_bytes(sizes)),
      host_memory_(host_bytes(sizes)),
      host_({host_memory_.data(), host_memory_.size()}, HostTier::block_bytes_for(sizes.page_bytes)),
      kv_(page_memory_, sizes.page_bytes, sizes.kv_pages, host_),
      verifier_(ledgers_),
      engine_(std::move(engine)),
      copies_(kv_,
              sizes.image_bytes > 0
                  ? &images_.emplace(image_memory_,
                                     ImageStoreSize{sizes.image_bytes, sizes.lanes, sizes.checkpoint_slots}, host_)
                  : nullptr,
              host_, *engine_) {
    NINFER_ASSERT_LE(0, sizes.checkpoint_slots);
} catch (const std::bad_alloc&) {
    // The tables of pages, slots and blocks are there from the start, with everything that they may ever list.
    throw OutOfMemoryError("tables of " + std::to_string(sizes.kv_pages) + " Device pages and " +
                           std::to_string(sizes.host_bytes) + " bytes on Host");
}

void ContextStores::check_invariants() const {
    copies_.check_invariants();
    ledgers_.check_invariants();
}

std::uint64_t ContextStores::fingerprint() const {
    Fingerprint fingerprint;
    fingerprint.add(copies_.fingerprint_of_all());
    fingerprint.add(ledgers_.fingerprint());
    return fingerprint.value();
}

std::size_t ContextStores::bookkeeping_bytes() const {
    return kv_.bookkeeping_bytes() + host_.bookkeeping_bytes() + ledgers_.bookkeeping_bytes() +
           copies_.bookkeeping_bytes() + (images_ ? images_->bookkeeping_bytes() : 0);
}

}  // namespace ninfer
