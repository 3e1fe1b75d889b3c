#pragma once

// A copy engine that does to the stores what hardware may: it takes its time, finishes out of order, and fails, before
// the first byte, midway or after the last one. Whatever it has not finished it has filled with garbage, so that a
// destination read too early, or given to somebody else too early, shows.
//
// 1. submit: the fate is drawn: how many polls nothing moves, and where it fails if it does.
// 2. poll: jobs move pieces in random order, at most max_bytes in all.
// 3. kDone or kFailed: the job never touches memory again.
// 4. forget.

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "cpp/memory/copy_engine.h"
#include "tests/sim/sim_random.h"

namespace ninfer::sim {

class FaultyCopyEngine final : public CopyEngine {
   public:
    struct Faults {
        int fail_percent = 0;      // of the copies
        int delay_polls_most = 0;  // polls for which a copy may not move
    };

    FaultyCopyEngine(std::uint64_t seed, Faults faults) : random_(seed), faults_(faults) {}

    CopyTicket submit(std::span<const CopySegment> segments) override;
    void poll(std::size_t max_bytes) override;
    CopyStatus status(CopyTicket ticket) const override;
    void forget(CopyTicket ticket) override;
    // Stops it at once, or somewhere further on, or not at all.
    void cancel(CopyTicket ticket) override;

    // Of the copies that are submitted from now on.
    void set_fail_percent(int percent) { faults_.fail_percent = percent; }

    // For the model: how a copy stands or ended, forgotten or not. One that has no ticket yet waits.
    CopyStatus outcome(CopyTicket ticket) const {
        return ticket == CopyTicket{} ? CopyStatus::kPending : outcomes_.at(ticket.value);
    }
    std::size_t moved(CopyTicket ticket) const { return ticket == CopyTicket{} ? 0 : jobs_.at(ticket.value).moved; }
    int jobs() const { return static_cast<int>(jobs_.size()); }  // that have not been forgotten
    std::uint64_t submitted() const { return last_ticket_; }
    std::size_t last_budget() const { return last_budget_; }  // of the last poll

   private:
    struct Job {
        std::vector<CopySegment> segments;
        std::size_t bytes = 0;
        std::size_t moved = 0;
        std::size_t fails_at = 0;  // beyond `bytes`: it does not fail
        int delay_polls = 0;
        CopyStatus status = CopyStatus::kPending;
    };

    std::size_t piece(const Job& job);
    static std::size_t advance(Job& job, std::size_t bytes_most);

    SimRandom random_;
    Faults faults_;
    std::uint64_t last_ticket_ = 0;
    std::size_t last_budget_ = 0;
    std::map<std::uint64_t, Job> jobs_;
    std::map<std::uint64_t, CopyStatus> outcomes_;
};

}  // namespace ninfer::sim
