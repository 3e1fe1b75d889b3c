#pragma once

// What a simulation has tried: per operation how often it was done, and how often it was refused with each kind that its
// contract names; per kind of refusal how often it was met; and situations that matter and that one cannot see in the
// others. A simulation that never meets a case proves nothing about it, so a rare case fails the run, and so does a refusal
// that no contract names.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/state/refusal.h"

namespace ninfer::sim {

// Kinds of refusals as bits.
using RefusalSet = std::uint64_t;
constexpr RefusalSet bit_of(RefusalKind kind) { return RefusalSet{1} << static_cast<int>(kind); }
constexpr RefusalSet refusals(std::initializer_list<RefusalKind> kinds) {
    RefusalSet set = 0;
    for (const RefusalKind kind : kinds) set |= bit_of(kind);
    return set;
}

class CoverageTable {
   public:
    // Operations, refusals (over all operations), situations.
    static constexpr std::int64_t kPerMillionSteps = 1000;
    static constexpr std::int64_t kPairsPerMillionSteps = 20;
    static constexpr std::int64_t kRarePairsPerMillionSteps = 2;
    static constexpr std::int64_t kNever = 0;
    // A shorter run is not judged: its worlds are too few to tell a rare case from bad luck.
    static constexpr std::int64_t kShortestJudgedRun = 200'000;

    struct OperationCase {
        std::string name;
        RefusalSet refusals = 0;
        RefusalSet rare = 0;  // of them, those that need several things at once: kRarePairsPerMillionSteps
    };
    struct SituationCase {
        std::string name;
        std::int64_t per_million_steps =
            kPerMillionSteps;  // kNever: it cannot occur, and if it does, that is a failure
    };
    struct Cases {
        std::vector<OperationCase> operations;
        std::vector<SituationCase> situations;
    };

    explicit CoverageTable(const Cases& cases);

    void count_done(int operation) { count(operations_[static_cast<std::size_t>(operation)].done); }
    // A kind that the operation's contract does not name is a failure: SimFailure.
    void count_refused(int operation, RefusalKind kind);
    // One that cannot occur is a failure: SimFailure.
    void count_situation(int situation);
    // The cases since the last call came in one world of so many steps.
    void end_world(std::int64_t steps);

    // Prints the table; false if a case is too rare.
    bool report() const;

   private:
    // Cases come in clusters, because each world has sizes and habits of its own: how far a count is from its rate by
    // chance is estimated from how much the worlds differ.
    struct Line {
        std::string name;
        std::int64_t per_million_steps = 0;
        std::int64_t count = 0;
        std::int64_t in_this_world = 0;
        double deviations = 0;  // of the worlds' counts from the needed rate, summed
        double squares = 0;
    };
    struct Row {
        Line done;
        RefusalSet refusals = 0;
        std::vector<Line> refused;  // [kind]
    };

    static void count(Line& line) { ++line.in_this_world; }
    template <typename Visit>
    void for_each_line(Visit&& visit);
    double tolerance(const Line& line) const;
    bool print(const Line& line) const;

    std::vector<Row> operations_;
    std::vector<Line> kinds_;  // [kind], over all operations; without a name: in no contract
    std::vector<Line> situations_;
    std::int64_t steps_ = 0;
    std::int64_t worlds_ = 0;
};

}  // namespace ninfer::sim
