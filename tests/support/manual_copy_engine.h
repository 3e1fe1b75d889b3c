#pragma once

// A copy engine whose copies end when the test says so, and how. Until then nothing moves; a copy that has failed has left
// garbage in its destination. It cannot stop a copy that is cancelled.

#include <cstring>
#include <map>
#include <vector>

#include "cpp/base/assert.h"
#include "cpp/memory/copy_engine.h"

namespace ninfer::testing_support {

class ManualCopyEngine final : public CopyEngine {
   public:
    CopyTicket submit(std::span<const CopySegment> segments) override {
        const CopyTicket ticket{++last_};
        jobs_[ticket.value] = {{segments.begin(), segments.end()}, CopyStatus::kPending};
        return ticket;
    }
    // Ends what complete_all or fail_all were called for.
    void poll(std::size_t) override {}
    CopyStatus status(CopyTicket ticket) const override {
        NINFER_ASSERT(jobs_.contains(ticket.value), "forgotten or never was");
        return jobs_.at(ticket.value).status;
    }
    void forget(CopyTicket ticket) override {
        NINFER_ASSERT(status(ticket) != CopyStatus::kPending, "before it has ended");
        jobs_.erase(ticket.value);
    }
    void cancel(CopyTicket ticket) override { static_cast<void>(status(ticket)); }

    void complete_all() {
        for (auto& [ticket, job] : jobs_) {
            if (job.status != CopyStatus::kPending) continue;
            for (const CopySegment& segment : job.segments) std::memcpy(segment.dst, segment.src, segment.bytes);
            job.status = CopyStatus::kDone;
        }
    }
    void fail_all() {
        for (auto& [ticket, job] : jobs_)
            if (job.status == CopyStatus::kPending) fail(job);
    }
    // The one that was submitted as the index-th of those that are pending.
    void fail_pending(std::size_t index) {
        for (auto& [ticket, job] : jobs_)
            if (job.status == CopyStatus::kPending && index-- == 0) return fail(job);
    }
    std::size_t copies() const { return jobs_.size(); }

   private:
    struct Job {
        std::vector<CopySegment> segments;
        CopyStatus status = CopyStatus::kPending;
    };

    static void fail(Job& job) {
        for (const CopySegment& segment : job.segments) std::memset(segment.dst, 0xEE, segment.bytes);
        job.status = CopyStatus::kFailed;
    }

    std::uint64_t last_ = 0;
    std::map<std::uint64_t, Job> jobs_;
};

}  // namespace ninfer::testing_support
