#include "tests/sim/joined_runs.h"

#include <algorithm>
#include <set>

namespace ninfer::sim {
namespace {

bool seen_by_the_same(const StoreModel& model, PageKey first, PageKey second) {
    return std::ranges::all_of(model.spaces, [&](const auto& item) {
        const auto& pages = item.second.pages;
        return std::ranges::count(pages, first) == std::ranges::count(pages, second);
    });
}

// Where an active space's own last run begins, by its first page.
std::set<PageKey> leaves_of_active(SimContext& context) {
    std::set<PageKey> leaves;
    for (const auto& [key, space] : context.model.spaces) {
        if (!space.active) continue;
        bool is_last = true;
        context.world.pages().for_each_run(SpaceId{key}, [&, &pages = space.pages](const RunFacts& run) {
            if (is_last && run.pages > 0) leaves.insert(pages[static_cast<std::size_t>(run.first_page)]);
            is_last = false;
        });
    }
    return leaves;
}

void fail_apart(std::size_t page) {
    throw SimFailure("runs are apart for nobody, before page " + std::to_string(page));
}

}  // namespace

void expect_joined_runs(SimContext& context, SpaceId id) {
    const ModelSpace& space = context.model.spaces.at(id.value);
    context.world.pages().for_each_run(id, [&](const RunFacts& run) {
        const auto begin = static_cast<std::size_t>(run.first_page);
        if (run.pages > 0 && begin > 0 && seen_by_the_same(context.model, space.pages[begin - 1], space.pages[begin]))
            fail_apart(begin);
    });
}

void expect_joined_after_release(SimContext& context, const std::vector<PageKey>& released) {
    const std::set<PageKey> of_released(released.begin(), released.end());
    const std::set<PageKey> leaves = leaves_of_active(context);
    for (const auto& [key, space] : context.model.spaces) {
        context.world.pages().for_each_run(SpaceId{key}, [&, &pages = space.pages](const RunFacts& run) {
            const auto begin = static_cast<std::size_t>(run.first_page);
            if (run.pages == 0 || begin == 0 || !of_released.contains(pages[begin - 1])) return;
            if (leaves.contains(pages[begin])) return;
            if (seen_by_the_same(context.model, pages[begin - 1], pages[begin])) fail_apart(begin);
        });
    }
}

void expect_few_runs(SimContext& context) {
    std::set<std::int32_t> runs;
    std::size_t active = 0;
    for (const auto& [key, space] : context.model.spaces) {
        active += space.active ? 1 : 0;
        context.world.pages().for_each_run(SpaceId{key}, [&](const RunFacts& run) { runs.insert(run.run.value); });
    }
    const std::size_t most = 2 * context.model.spaces.size() + active;
    if (runs.size() > most)
        throw SimFailure("runs: at most " + std::to_string(most) + " are needed, found " + std::to_string(runs.size()));
}

}  // namespace ninfer::sim
