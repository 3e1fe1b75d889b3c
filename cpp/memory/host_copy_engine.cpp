#include "cpp/memory/host_copy_engine.h"

#include <algorithm>
#include <cstring>

#include "cpp/base/assert.h"

namespace ninfer {

CopyTicket HostCopyEngine::submit(std::span<const CopySegment> segments) {
    const CopyTicket ticket{++last_ticket_};
    Job& job = jobs_[ticket.value];
    job.segments.assign(segments.begin(), segments.end());
    // A copy of nothing is done and may be forgotten before the next poll.
    if (!job.done()) queue_.push_back(ticket.value);
    return ticket;
}

void HostCopyEngine::poll(std::size_t max_bytes) {
    while (!queue_.empty()) {
        const auto found = jobs_.find(queue_.front());
        // A cancelled one may be forgotten already.
        if (found != jobs_.end() && !found->second.cancelled) {
            max_bytes -= advance(found->second, max_bytes);
            if (!found->second.done()) return;
        }
        queue_.pop_front();
    }
}

std::size_t HostCopyEngine::advance(Job& job, std::size_t max_bytes) {
    std::size_t total = 0;
    while (!job.done()) {
        const CopySegment& segment = job.segments[job.segment];
        const std::size_t count = std::min(segment.bytes - job.moved, max_bytes - total);
        if (count > 0) std::memcpy(segment.dst + job.moved, segment.src + job.moved, count);
        job.moved += count;
        total += count;
        if (job.moved < segment.bytes) break;
        ++job.segment;
        job.moved = 0;
    }
    return total;
}

CopyStatus HostCopyEngine::status(CopyTicket ticket) const {
    const auto found = jobs_.find(ticket.value);
    NINFER_ASSERT(found != jobs_.end(), "the status of a copy that is forgotten or never was");
    if (found->second.cancelled) return CopyStatus::kFailed;
    return found->second.done() ? CopyStatus::kDone : CopyStatus::kPending;
}

void HostCopyEngine::cancel(CopyTicket ticket) {
    if (status(ticket) == CopyStatus::kPending) jobs_.at(ticket.value).cancelled = true;
}

void HostCopyEngine::forget(CopyTicket ticket) {
    NINFER_ASSERT(status(ticket) != CopyStatus::kPending, "a copy is forgotten before it has ended");
    jobs_.erase(ticket.value);
}

}  // namespace ninfer
