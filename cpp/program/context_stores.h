#pragma once

// All stores of one program and the memory below them. Nothing here knows a model, a request or an owner.

#include <memory>
#include <optional>

#include "cpp/memory/copy_engine.h"
#include "cpp/memory/host_buffer.h"
#include "cpp/memory/host_memory.h"
#include "cpp/program/ledger_store.h"
#include "cpp/program/ledger_verifier.h"
#include "cpp/state/host_tier.h"
#include "cpp/state/paged_kv_store.h"
#include "cpp/state/replica_copies.h"
#include "cpp/state/state_image_store.h"
#include "cpp/transaction/state_stores.h"

namespace ninfer {

struct ContextSizes {
    std::int64_t kv_pages = 0;
    std::size_t page_bytes = 0;         // of one page group
    std::size_t image_bytes = 0;        // 0: a model without recurrent layers, there is no state axis
    std::int64_t lanes = 0;             // active sequences
    std::int64_t checkpoint_slots = 0;  // Device images of checkpoints
    std::int64_t host_bytes = 0;
    std::int64_t max_context = 0;  // tokens of the longest sequence
    std::int64_t vocab_size = 0;
};

class ContextStores {
   public:
    // Throws OutOfMemoryError.
    ContextStores(const ContextSizes& sizes, std::unique_ptr<CopyEngine> engine);
    ContextStores(const ContextStores&) = delete;
    ContextStores& operator=(const ContextStores&) = delete;

    bool has_images() const noexcept { return images_.has_value(); }
    PagedKvStore& kv() noexcept { return kv_; }
    const PagedKvStore& kv() const noexcept { return kv_; }
    // Only if has_images().
    StateImageStore& images() noexcept { return *images_; }
    const StateImageStore& images() const noexcept { return *images_; }
    HostTier& host() noexcept { return host_; }
    const HostTier& host() const noexcept { return host_; }
    LedgerStore& ledgers() noexcept { return ledgers_; }
    const LedgerStore& ledgers() const noexcept { return ledgers_; }
    LedgerVerifier& verifier() noexcept { return verifier_; }
    ReplicaCopies& copies() noexcept { return copies_; }
    const ReplicaCopies& copies() const noexcept { return copies_; }

    StateStores state_stores() noexcept { return {&kv_, images_ ? &*images_ : nullptr, &copies_}; }

    void check_invariants() const;
    std::uint64_t fingerprint() const;
    std::size_t bookkeeping_bytes() const;

   private:
    HostMemory page_memory_;
    HostMemory image_memory_;
    HostBuffer host_memory_;
    HostTier host_;
    PagedKvStore kv_;
    std::optional<StateImageStore> images_;
    LedgerStore ledgers_;
    LedgerVerifier verifier_;
    std::unique_ptr<CopyEngine> engine_;  // ends before the memory that it moves
    ReplicaCopies copies_;
};

}  // namespace ninfer
