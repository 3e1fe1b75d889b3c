#pragma once

// A bump allocator over one block of memory, reset between ops. Scratch comes in: no op allocates.
// Not thread-safe: carve per-thread parts before a parallel_for.

#include <cstddef>
#include <cstdint>

#include "cpp/base/assert.h"
#include "cpp/base/inline.h"
#include "cpp/memory/host_buffer.h"

namespace ninfer {

class ScratchArena {
   public:
    explicit ScratchArena(std::size_t bytes) : buffer_(bytes) {}

    // `count` uninitialised elements aligned to 64 bytes, valid until the enclosing Scope ends. Asserts that they fit.
    template <typename T>
    NINFER_INLINE T* take(std::int64_t count) {
        NINFER_ASSERT_LE(0, count);
        // A byte count that wrapped around would pass for a small one.
        NINFER_ASSERT_LE(count, INT64_MAX / static_cast<std::int64_t>(sizeof(T)));
        return static_cast<T*>(take_bytes(static_cast<std::size_t>(count) * sizeof(T)));
    }

    std::size_t used_bytes() const noexcept { return used_; }
    std::size_t peak_bytes() const noexcept { return peak_; }
    std::size_t capacity_bytes() const noexcept { return buffer_.size(); }

    // Gives back, at its end, all that was taken during its life.
    class Scope {
       public:
        NINFER_INLINE explicit Scope(ScratchArena& arena) : arena_(arena), mark_(arena.used_) {}
        NINFER_INLINE ~Scope() { arena_.used_ = mark_; }
        Scope(const Scope&) = delete;
        Scope& operator=(const Scope&) = delete;

       private:
        ScratchArena& arena_;
        std::size_t mark_;
    };

   private:
    void* take_bytes(std::size_t bytes);

    HostBuffer buffer_;
    std::size_t used_ = 0;
    std::size_t peak_ = 0;
};

}  // namespace ninfer
