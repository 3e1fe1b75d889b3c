#include "tests/sim/fragmentation.h"

#include <algorithm>
#include <vector>

#include "tests/sim/joined_runs.h"
#include "tests/sim/space_operations.h"
#include "tests/sim/store_checker.h"

namespace ninfer::sim {
namespace {

constexpr int kMostBeginnings = 12;
constexpr std::size_t kLongPages = 4;
constexpr std::size_t kMostSpaces = 10;

bool is_long(const SimContext& context, const ModelSpace& space) {
    return !space.active && space.pages.size() >= kLongPages && context.model.pins(space.pages.back()) == 0;
}

struct Beginning {
    SpaceId space;
    int frontier = 0;
};

void put_in_order(SimRandom& random, std::vector<Beginning>& beginnings) {
    const int way = random.below(4);
    for (std::size_t i = beginnings.size(); way == 3 && i > 1; --i)
        std::swap(beginnings[i - 1], beginnings[static_cast<std::size_t>(random.below(static_cast<int>(i)))]);
    if (way == 3) return;
    std::ranges::sort(beginnings, {}, &Beginning::frontier);
    if (way == 1) std::ranges::reverse(beginnings);
    const auto middle = beginnings.begin() + static_cast<std::ptrdiff_t>(beginnings.size() / 2);
    if (way == 2) std::ranges::rotate(beginnings, middle);
}

}  // namespace

bool any_long_space(SimContext& context) {
    return context.model.spaces.size() <= kMostSpaces &&
           std::ranges::any_of(context.model.spaces, [&](const auto& item) { return is_long(context, item.second); });
}

void fragment_space(SimContext& context) {
    context.count_done();
    if (!any_long_space(context)) return;
    const SpaceId source = context.draw_space([&](const ModelSpace& space) { return is_long(context, space); });
    const auto found = context.model.spaces.find(source.value);
    if (found == context.model.spaces.end() || !is_long(context, found->second)) return;
    const int frontier = found->second.frontier;
    std::vector<Beginning> beginnings;
    const int count = context.random.between(3, kMostBeginnings);
    for (int i = 0; i < count; ++i) {
        const int any = context.random.between(1, frontier);
        const int wanted = context.random.percent(60) ? std::max(64, any / 64 * 64) : any;
        const SpaceId made = share_space(context, source, std::min(wanted, frontier));
        beginnings.push_back({made, std::min(wanted, frontier)});
    }
    expect_few_runs(context);
    // The beginnings go on without what they were taken of.
    if (context.random.percent(40))
        release_space(context, source);
    else
        beginnings.push_back({source, frontier});
    put_in_order(context.random, beginnings);
    const std::size_t left = static_cast<std::size_t>(context.random.below(2));
    for (std::size_t i = 0; i + left < beginnings.size(); ++i) {
        release_space(context, beginnings[i].space);
        check_stores(context);
    }
}

}  // namespace ninfer::sim
