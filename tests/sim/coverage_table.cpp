#include "tests/sim/coverage_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <set>
#include <utility>

#include "tests/sim/sim_failure.h"

namespace ninfer::sim {
namespace {

constexpr std::int64_t kMillion = 1'000'000;
constexpr int kKinds = 64;
// Standard errors by which a run of less than a million steps may miss a rate.
constexpr double kErrorsAllowed = 4;

void print_title(const char* title, std::int64_t per_million) {
    if (per_million == CoverageTable::kNever) {
        std::printf("%s that cannot be, and have not been\n", title);
        return;
    }
    std::printf("%s, each at least %lld times per million steps\n", title, static_cast<long long>(per_million));
}

}  // namespace

CoverageTable::CoverageTable(const Cases& cases) : kinds_(kKinds) {
    for (const OperationCase& operation : cases.operations) {
        Row row{.done = {operation.name, kPerMillionSteps}, .refusals = operation.refusals, .refused = {}};
        row.refused.resize(kKinds);
        for (int i = 0; i < kKinds; ++i) {
            const auto kind = static_cast<RefusalKind>(i);
            if ((operation.refusals & bit_of(kind)) == 0) continue;
            const std::string name(to_string(kind));
            const bool rare = (operation.rare & bit_of(kind)) != 0;
            row.refused[static_cast<std::size_t>(i)] = {operation.name + ": " + name,
                                                        rare ? kRarePairsPerMillionSteps : kPairsPerMillionSteps};
            kinds_[static_cast<std::size_t>(i)] = {name, kPerMillionSteps};
        }
        operations_.push_back(std::move(row));
    }
    for (const SituationCase& situation : cases.situations)
        situations_.push_back({situation.name, situation.per_million_steps});
}

void CoverageTable::count_refused(int operation, RefusalKind kind) {
    Row& row = operations_[static_cast<std::size_t>(operation)];
    if ((row.refusals & bit_of(kind)) == 0)
        throw SimFailure("the contract of " + row.done.name + " does not name " + std::string(to_string(kind)));
    count(row.refused[static_cast<std::size_t>(kind)]);
    count(kinds_[static_cast<std::size_t>(kind)]);
}

void CoverageTable::count_situation(int situation) {
    Line& line = situations_[static_cast<std::size_t>(situation)];
    if (line.per_million_steps == kNever) throw SimFailure("what cannot be has come: " + line.name);
    count(line);
}

template <typename Visit>
void CoverageTable::for_each_line(Visit&& visit) {
    for (Row& row : operations_) {
        visit(row.done);
        for (Line& line : row.refused) visit(line);
    }
    for (Line& line : kinds_) visit(line);
    for (Line& line : situations_) visit(line);
}

void CoverageTable::end_world(std::int64_t steps) {
    steps_ += steps;
    ++worlds_;
    for_each_line([&](Line& line) {
        const auto needed = static_cast<double>(steps * line.per_million_steps) / kMillion;
        const double deviation = static_cast<double>(line.in_this_world) - needed;
        line.count += std::exchange(line.in_this_world, 0);
        line.deviations += deviation;
        line.squares += deviation * deviation;
    });
}

double CoverageTable::tolerance(const Line& line) const {
    if (steps_ >= kMillion) return 0;
    const double about_mean = line.squares - line.deviations * line.deviations / static_cast<double>(worlds_);
    return kErrorsAllowed * std::sqrt(std::max(0.0, about_mean));
}

bool CoverageTable::print(const Line& line) const {
    const auto needed = static_cast<double>(steps_ * line.per_million_steps / kMillion);
    const bool enough = steps_ < kShortestJudgedRun || static_cast<double>(line.count) + tolerance(line) >= needed;
    std::printf("  %-52s %10lld%s\n", line.name.c_str(), static_cast<long long>(line.count),
                enough ? "" : "  TOO RARE");
    return enough;
}

bool CoverageTable::report() const {
    bool enough = true;
    const auto print_named = [&](const Line& line) {
        if (!line.name.empty()) enough = print(line) && enough;
    };
    print_title("operations done", kPerMillionSteps);
    for (const Row& row : operations_) print_named(row.done);
    print_title("refusals", kPerMillionSteps);
    for (const Line& line : kinds_) print_named(line);
    std::set<std::int64_t, std::greater<>> rates;
    for (const Line& line : situations_) rates.insert(line.per_million_steps);
    for (const std::int64_t per_million : rates) {
        print_title("situations", per_million);
        for (const Line& line : situations_)
            if (line.per_million_steps == per_million) print_named(line);
    }
    for (const std::int64_t per_million_steps : {kPairsPerMillionSteps, kRarePairsPerMillionSteps}) {
        print_title("refusals by operation", per_million_steps);
        for (const Row& row : operations_)
            for (const Line& line : row.refused)
                if (line.per_million_steps == per_million_steps) print_named(line);
    }
    return enough;
}

}  // namespace ninfer::sim
