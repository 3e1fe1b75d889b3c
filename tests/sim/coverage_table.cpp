#include "tests/sim/coverage_table.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "tests/sim/sim_failure.h"

namespace ninfer::sim {
namespace {

bool print_case(std::string_view name, std::int64_t count, std::int64_t needed) {
    const bool enough = count >= needed;
    std::printf("  %-44.*s %10lld%s\n", static_cast<int>(name.size()), name.data(), static_cast<long long>(count),
                enough ? "" : "  TOO RARE");
    return enough;
}

// What a run of this length must see. A short one may miss a rate by chance, and its cases come in clusters, because a
// world has its own sizes: it is allowed six standard deviations less. From a million steps on, the rate itself.
std::int64_t needed_count(std::int64_t steps, std::int64_t per_million) {
    constexpr std::int64_t kMillion = 1'000'000;
    const double expected = static_cast<double>(steps) * static_cast<double>(per_million) / kMillion;
    const double slack = steps < kMillion ? 6.0 * std::sqrt(expected) : 0.0;
    return static_cast<std::int64_t>(std::max(0.0, expected - slack));
}

std::int64_t print_title(const char* title, std::int64_t steps, std::int64_t per_million) {
    const std::int64_t needed = needed_count(steps, per_million);
    std::printf("%s, each at least %lld times\n", title, static_cast<long long>(needed));
    return needed;
}

}  // namespace

CoverageTable::CoverageTable(const Cases& cases)
    : kinds_(cases.kinds), situations_per_million_steps_(cases.situations_per_million_steps) {
    for (const std::string& name : cases.operations) rows_.push_back({.name = name});
    for (const std::string& name : cases.situations) situations_.push_back({.name = name});
}

void CoverageTable::count_refused(int operation, RefusalKind kind) {
    if (std::ranges::find(kinds_, kind) == kinds_.end())
        throw SimFailure("no store may answer " + std::string(to_string(kind)));
    ++rows_[static_cast<std::size_t>(operation)].refused[static_cast<std::size_t>(kind)];
}

bool CoverageTable::report(std::int64_t steps) const {
    bool enough = true;
    std::int64_t needed = print_title("operations done", steps, kPerMillionSteps);
    for (const Row& row : rows_) enough = print_case(row.name, row.done, needed) && enough;
    needed = print_title("refusals", steps, kPerMillionSteps);
    for (const RefusalKind kind : kinds_) {
        std::int64_t sum = 0;
        for (const Row& row : rows_) sum += row.refused[static_cast<std::size_t>(kind)];
        enough = print_case(to_string(kind), sum, needed) && enough;
    }
    needed = print_title("situations", steps, situations_per_million_steps_);
    for (const Row& row : situations_)
        if (!row.name.empty()) enough = print_case(row.name, row.done, needed) && enough;
    report_pairs();
    return enough;
}

void CoverageTable::report_pairs() const {
    std::printf("refusals by operation\n");
    for (const Row& row : rows_)
        for (const RefusalKind kind : kinds_)
            if (const std::int64_t count = row.refused[static_cast<std::size_t>(kind)]; count > 0)
                print_case(row.name + ": " + std::string(to_string(kind)), count, 0);
}

}  // namespace ninfer::sim
