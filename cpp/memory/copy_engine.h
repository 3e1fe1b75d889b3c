#pragma once

// Moves bytes between a device's memory and the Host tier's, asynchronously: submitted, then polled by the one thread
// that submitted.
//
// Life of a copy: 1. submit: the engine has its own list of segments, status kPending; 2. moved during polls, in any
// order and in pieces; 3. kDone (every byte is there) or kFailed (the destination holds anything): from now on the engine
// never touches its memory again; 4. forget, exactly once, only after 3. Cancelled before 3, it is kFailed as soon as the
// engine can stop it, or ends as it would have.
// From 1 to 3 sources must not change, and destinations must not be read, written, or given to somebody else.

#include <cstddef>
#include <cstdint>
#include <span>

namespace ninfer {

struct CopySegment {
    std::byte* dst = nullptr;
    const std::byte* src = nullptr;
    std::size_t bytes = 0;
};

// 0 is never a ticket; no engine gives the same value twice.
struct CopyTicket {
    std::uint64_t value = 0;
    bool operator==(const CopyTicket&) const = default;
};

enum class CopyStatus : std::uint8_t { kPending, kDone, kFailed };

class CopyEngine {
   public:
    // What one poll may move while rows decode: about a millisecond of a processor's time.
    static constexpr std::size_t kDecodingBudgetBytes = std::size_t{8} << 20;

    virtual ~CopyEngine() = default;

    // Costs the caller's time, so nobody submits more at once than about what a poll may move (ReplicaCopies lets the rest
    // wait). Segments do not overlap each other. An empty list is a copy of nothing, which becomes kDone as any other.
    virtual CopyTicket submit(std::span<const CopySegment> segments) = 0;
    // Moves at most max_bytes if moving takes the caller's time; otherwise only looks at what has finished.
    virtual void poll(std::size_t max_bytes) = 0;
    // The ticket must not be forgotten: asserted.
    virtual CopyStatus status(CopyTicket ticket) const = 0;
    virtual void forget(CopyTicket ticket) = 0;
    // Nobody needs the copy any more: an engine that can stop it does. Of one that has ended, nothing changes.
    virtual void cancel(CopyTicket ticket) = 0;
};

}  // namespace ninfer
