#pragma once

// The copy engine of the CPU backend: memcpy inside poll, first come first served, never more than poll's limit. A segment
// may be split over polls. Never fails but by cancel, which stops a copy at once.

#include <deque>
#include <unordered_map>
#include <vector>

#include "cpp/memory/copy_engine.h"

namespace ninfer {

class HostCopyEngine final : public CopyEngine {
   public:
    CopyTicket submit(std::span<const CopySegment> segments) override;
    void poll(std::size_t max_bytes) override;
    CopyStatus status(CopyTicket ticket) const override;
    void forget(CopyTicket ticket) override;
    void cancel(CopyTicket ticket) override;

   private:
    struct Job {
        std::vector<CopySegment> segments;
        std::size_t segment = 0;  // the one being moved; segments.size(): all are done
        std::size_t moved = 0;    // bytes of it

        bool cancelled = false;

        bool done() const noexcept { return segment == segments.size(); }
    };

    // Moves at most max_bytes of the job; returns how many.
    static std::size_t advance(Job& job, std::size_t max_bytes);

    std::uint64_t last_ticket_ = 0;
    std::unordered_map<std::uint64_t, Job> jobs_;  // those that are not forgotten
    std::deque<std::uint64_t> queue_;              // not done or cancelled, in the order of submission
};

}  // namespace ninfer
