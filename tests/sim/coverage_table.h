#pragma once

// What a simulation has tried: per operation how often it was done and how often refused, per kind of refusal how often it
// was met, and situations that matter and that one cannot see in the two others. A simulation that never meets a case
// proves nothing about it, so a rare case fails the run.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/state/refusal.h"

namespace ninfer::sim {

class CoverageTable {
   public:
    // Operations and refusals.
    static constexpr std::int64_t kPerMillionSteps = 1000;
    static constexpr std::int64_t kSituationsPerMillionSteps = 20;

    struct Cases {
        std::vector<std::string> operations;
        std::vector<RefusalKind> kinds;       // that the stores can answer
        std::vector<std::string> situations;  // an empty name: one that cannot occur in this run
        std::int64_t situations_per_million_steps = kSituationsPerMillionSteps;
    };

    explicit CoverageTable(const Cases& cases);

    void count_done(int operation) { ++rows_[static_cast<std::size_t>(operation)].done; }
    // A kind that was not announced is a failure of the stores or of the table: SimFailure.
    void count_refused(int operation, RefusalKind kind);
    void count_situation(int situation) { ++situations_[static_cast<std::size_t>(situation)].done; }

    // Prints the table; false if a case is too rare.
    bool report(std::int64_t steps) const;

   private:
    static constexpr std::size_t kKinds = 64;
    struct Row {
        std::string name;
        std::int64_t done = 0;
        std::array<std::int64_t, kKinds> refused{};
    };

    void report_pairs() const;

    std::vector<Row> rows_;
    std::vector<Row> situations_;
    std::vector<RefusalKind> kinds_;
    std::int64_t situations_per_million_steps_;
};

}  // namespace ninfer::sim
