#include "tests/sim/faulty_copy_engine.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpp/base/assert.h"

namespace ninfer::sim {
namespace {

constexpr int kGarbage = 0xA5;
constexpr std::size_t kNever = SIZE_MAX;

}  // namespace

CopyTicket FaultyCopyEngine::submit(std::span<const CopySegment> segments) {
    Job job;
    job.segments.assign(segments.begin(), segments.end());
    for (const CopySegment& segment : segments) {
        if (segment.bytes > 0) std::memset(segment.dst, kGarbage, segment.bytes);
        job.bytes += segment.bytes;
    }
    job.fails_at = kNever;
    if (random_.percent(faults_.fail_percent)) {
        const std::size_t middle = job.bytes == 0 ? 0 : random_.next() % job.bytes;
        const std::size_t places[] = {0, middle, job.bytes};
        job.fails_at = places[random_.below(3)];
    }
    job.delay_polls = random_.below(faults_.delay_polls_most + 1);
    const CopyTicket ticket{++last_ticket_};
    outcomes_[ticket.value] = CopyStatus::kPending;
    jobs_.emplace(ticket.value, std::move(job));
    return ticket;
}

void FaultyCopyEngine::poll(std::size_t max_bytes) {
    last_budget_ = max_bytes;
    std::vector<Job*> open;
    for (auto& [value, job] : jobs_)
        if (job.status == CopyStatus::kPending) open.push_back(&job);
    while (!open.empty()) {
        const auto chosen = open.begin() + random_.below(static_cast<int>(open.size()));
        Job& job = **chosen;
        open.erase(chosen);
        if (job.delay_polls > 0)
            --job.delay_polls;
        else
            max_bytes -= advance(job, random_.percent(50) ? max_bytes : std::min(max_bytes, piece(job)));
    }
    for (const auto& [value, job] : jobs_) outcomes_[value] = job.status;
}

std::size_t FaultyCopyEngine::piece(const Job& job) { return random_.next() % (job.bytes + 1); }

std::size_t FaultyCopyEngine::advance(Job& job, std::size_t bytes_most) {
    const std::size_t end = std::min({job.bytes, job.fails_at, job.moved + bytes_most});
    const std::size_t before = job.moved;
    std::size_t begin_of_segment = 0;
    for (const CopySegment& segment : job.segments) {
        const std::size_t first = std::max(job.moved, begin_of_segment);
        const std::size_t last = std::min(end, begin_of_segment + segment.bytes);
        if (first < last) {
            const std::size_t offset = first - begin_of_segment;
            std::memcpy(segment.dst + offset, segment.src + offset, last - first);
            job.moved = last;
        }
        begin_of_segment += segment.bytes;
    }
    if (job.moved == job.fails_at)
        job.status = CopyStatus::kFailed;
    else if (job.moved == job.bytes)
        job.status = CopyStatus::kDone;
    return job.moved - before;
}

CopyStatus FaultyCopyEngine::status(CopyTicket ticket) const {
    const auto found = jobs_.find(ticket.value);
    NINFER_ASSERT(found != jobs_.end(), "the status of a copy that is forgotten or never was");
    return found->second.status;
}

void FaultyCopyEngine::forget(CopyTicket ticket) {
    NINFER_ASSERT(status(ticket) != CopyStatus::kPending, "a copy is forgotten before it has ended");
    jobs_.erase(ticket.value);
}

void FaultyCopyEngine::cancel(CopyTicket ticket) {
    if (status(ticket) != CopyStatus::kPending) return;
    Job& job = jobs_.at(ticket.value);
    if (random_.percent(50)) {
        const std::size_t stop = job.moved + random_.next() % (job.bytes - job.moved + 1);
        job.fails_at = std::min(job.fails_at, stop);
    } else if (random_.percent(50)) {
        job.status = CopyStatus::kFailed;
        outcomes_[ticket.value] = job.status;
    }
}

}  // namespace ninfer::sim
