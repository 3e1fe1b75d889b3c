#include "tests/sim/space_operations.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/candidates.h"
#include "tests/sim/joined_runs.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

const ModelSpace* find_space(const SimContext& context, SpaceId id) {
    const auto found = context.model.spaces.find(id.value);
    return found == context.model.spaces.end() ? nullptr : &found->second;
}

Expected stale_space(const SimContext& context, SpaceId id) {
    if (find_space(context, id) != nullptr) return {};
    return context.model.space_handles.stale(id.value);
}

Expected not_active_settled(const SimContext& context, SpaceId id) {
    const ModelSpace* space = find_space(context, id);
    if (space == nullptr) return stale_space(context, id);
    if (!space->active) return Refusal{kFrozen, 1, 0};
    if (space->tail_source != 0) return Refusal{kUnsettled, 0, 1};
    return {};
}

Expected not_frozen(const SimContext& context, SpaceId id) {
    const ModelSpace* space = find_space(context, id);
    if (space == nullptr) return stale_space(context, id);
    if (space->active) return Refusal{kActive, 0, 1};
    return {};
}

Expected no_growth(const SimContext& context, int frontier, int reserved, bool copies_tail) {
    if (copies_tail && reserved < 1) return Refusal{kOverReservation, frontier, frontier / 64 * 64};
    const int free = context.model.pages_free();
    if (reserved > free) return Refusal{kNoPages, reserved, free};
    return {};
}

Expected not_on_device(const SimContext& context, const ModelSpace& space, int frontier) {
    int found = 0;
    for (int i = 0; i < pages_for(frontier); ++i)
        found += context.model.pages.at(space.pages[static_cast<std::size_t>(i)]).on_device ? 1 : 0;
    if (found < pages_for(frontier)) return Refusal{kNotOnDevice, pages_for(frontier), found};
    return {};
}

SimContext::Effect effect_if(bool changes) { return changes ? SimContext::Effect::kSome : SimContext::Effect::kNone; }

int draw_reservation(SimContext& context) {
    if (context.random.percent(4)) return context.random.between(0, 60);
    return context.random.below(std::clamp(context.model.pages_free(), 1, 5) + (context.random.percent(20) ? 2 : 0));
}

SpaceId born(SimContext& context, SpaceId id, ModelSpace space) {
    context.model.space_handles.born(id.value);
    context.model.spaces.emplace(id.value, std::move(space));
    return id;
}

// A new active space with the source's pages up to the frontier; a partial tail is a new page that waits for its copy.
ModelSpace begin_active(SimContext& context, const ModelSpace& source, int frontier, int reserved) {
    ModelSpace space{.active = true, .frontier = frontier, .reserved = reserved};
    space.pages.assign(source.pages.begin(), source.pages.begin() + frontier / 64);
    if (frontier % 64 != 0) {
        space.tail_source = source.pages[static_cast<std::size_t>(frontier / 64)];
        space.pages.push_back(context.model.new_page());
        --space.reserved;
    }
    return space;
}

// Fills tokens [begin, end) of an active space's mapped pages with new values; the first `known` of them are remembered.
void write_tokens(SimContext& context, SpaceId id, int begin, int end, int known) {
    ModelSpace& space = context.model.spaces.at(id.value);
    const auto table = context.world.pages().page_table(id);
    for (int token = begin; token < end; ++token) {
        const auto index = static_cast<std::size_t>(token / 64);
        const auto offset = static_cast<std::size_t>(token % 64);
        const std::uint64_t value = mix(context.random.next() ^ id.value);
        const KvPoolView pool = context.world.pages().pool();
        std::byte* page = pool.data + static_cast<std::size_t>(table[index]) * kPageBytes;
        std::memcpy(page + offset * kTokenBytes, &value, kTokenBytes);
        if (token < begin + known) context.model.pages.at(space.pages[index]).values[offset] = value;
    }
}

void count_freeze(SimContext& context, const ModelSpace& space, const ModelSpace& frozen) {
    context.count(space.frontier % 64 != 0 ? Situation::kFrozeWrittenTail : Situation::kFrozeAligned);
    if (space.pages.size() > frozen.pages.size()) context.count(Situation::kFrozeWithPagesAhead);
    if (!frozen.pages.empty() && context.model.references(frozen.pages.back()) > 1)
        context.count(Situation::kFrozeNothingNew);
}

void commit_to(SimContext& context, SpaceId id, int frontier) {
    ModelSpace& space = context.model.spaces.at(id.value);
    for (int token = space.frontier; token < frontier; ++token) {
        ModelPage& page = context.model.pages.at(space.pages[static_cast<std::size_t>(token / 64)]);
        page.coverage = token % 64 + 1;
        page.new_epoch = true;
    }
    space.frontier = frontier;
}

}  // namespace

void open_space(SimContext& context) {
    const int reserved = draw_reservation(context);
    context.tell("open reserving %d", reserved);
    const auto made =
        context.attempt(no_growth(context, 0, reserved, false), [&] { return context.world.pages().open(reserved); });
    if (made) born(context, *made, {.active = true, .frontier = 0, .reserved = reserved});
}

void map_space(SimContext& context) {
    const SpaceId id = context.draw_space(can_grow);
    const ModelSpace* space = find_space(context, id);
    const int limit = space == nullptr ? 64 : (static_cast<int>(space->pages.size()) + space->reserved) * 64;
    const int end = context.draw_frontier(limit);
    context.tell("map %llx to %d", shown(id.value), end);
    Expected expected = not_active_settled(context, id);
    if (!expected && end > limit) expected = Refusal{kOverReservation, end, limit};
    const bool maps = space != nullptr && pages_for(end) > static_cast<int>(space->pages.size());
    if (!context.attempt(expected, [&] { return context.world.pages().map(id, end); }, effect_if(maps))) return;
    ModelSpace& mapped = context.model.spaces.at(id.value);
    while (static_cast<int>(mapped.pages.size()) < pages_for(end)) {
        mapped.pages.push_back(context.model.new_page());
        --mapped.reserved;
    }
}

void run_unit(SimContext& context) {
    const SpaceId id = context.draw_space(can_write);
    Expected expected = not_active_settled(context, id);
    int from = 0;
    int end = 1;
    if (!expected) {
        const ModelSpace& space = context.model.spaces.at(id.value);
        from = space.frontier;
        const int mapped = static_cast<int>(space.pages.size()) * 64;
        end = from + std::min(mapped - from, context.random.percent(50) ? 1 : context.random.between(1, 130));
        const int written = std::min(mapped, end + context.random.between(0, 8));
        write_tokens(context, id, from, written, end - from);
    }
    context.tell("unit %llx from %d to %d", shown(id.value), from, end);
    const auto commit = [&] { return context.world.pages().commit(id, end); };
    if (context.attempt(expected, commit, effect_if(end > from))) commit_to(context, id, end);
}

void commit_wrongly(SimContext& context) {
    const SpaceId id = context.draw_space(has_written);
    Expected expected = not_active_settled(context, id);
    int frontier = 0;
    if (!expected) {
        const ModelSpace& space = context.model.spaces.at(id.value);
        const int mapped = static_cast<int>(space.pages.size()) * 64;
        const bool beyond = space.frontier == 0 || context.random.percent(25);
        frontier = beyond ? mapped + context.random.between(1, 100) : context.random.below(space.frontier);
        expected = beyond ? Refusal{kNotMapped, frontier, mapped} : Refusal{kBackwards, frontier, space.frontier};
        if (context.random.percent(30)) {
            frontier = space.frontier;  // a commit of nothing is legal, and changes nothing
            expected.reset();
        }
    }
    context.tell("commit %llx to %d", shown(id.value), frontier);
    context.attempt(expected, [&] { return context.world.pages().commit(id, frontier); }, SimContext::Effect::kNone);
}

void fork_space(SimContext& context) {
    const SpaceId id = context.draw_space(can_branch);
    const ModelSpace* source = find_space(context, id);
    const int frontier = context.draw_frontier(source == nullptr ? 64 : source->frontier);
    const int reserved = draw_reservation(context);
    context.tell("fork %llx at %d reserving %d", shown(id.value), frontier, reserved);
    Expected expected = not_frozen(context, id);
    if (!expected && frontier > source->frontier) expected = Refusal{kBeyondFrontier, frontier, source->frontier};
    if (!expected) expected = no_growth(context, frontier, reserved, frontier % 64 != 0);
    if (!expected) expected = not_on_device(context, *source, frontier);
    const auto made = context.attempt(expected, [&] { return context.world.pages().fork(id, frontier, reserved); });
    if (!made) return;
    if (!source->pages.empty() && context.model.references(source->pages.front()) > 3)
        context.count(Situation::kForkedDeep);
    born(context, *made, begin_active(context, *source, frontier, reserved));
}

void consume_space(SimContext& context) {
    const bool cut_short = context.random.percent(85) && any_space<is_cut_short>(context);
    const SpaceId id = context.draw_space([&](const ModelSpace& space) {
        return cut_short ? is_cut_short(context, space)
                         : can_branch(space) && context.model.pins(space.pages.back()) == 0;
    });
    const int reserved = cut_short ? context.random.below(2) : draw_reservation(context);
    context.tell("consume %llx reserving %d", shown(id.value), reserved);
    Expected expected = not_frozen(context, id);
    bool in_place = false;
    if (!expected) {
        const ModelSpace& source = context.model.spaces.at(id.value);
        const bool unaligned = source.frontier % 64 != 0;
        in_place = unaligned && context.model.references(source.pages.back()) == 1;
        expected = no_growth(context, source.frontier, reserved, unaligned && !in_place);
        if (!expected) expected = not_on_device(context, source, source.frontier);
        const int pins = in_place ? context.model.pins(source.pages.back()) : 0;
        if (!expected && pins > 0) expected = Refusal{kPinned, 0, pins};
    }
    const auto made = context.attempt(expected, [&] { return context.world.pages().consume(id, reserved); });
    if (!made) return;
    ModelSpace space = context.model.spaces.at(id.value);
    if (in_place) {
        const bool is_short = context.model.pages.at(space.pages.back()).coverage != space.frontier % 64;
        context.count(is_short ? Situation::kConsumedTailCutShort : Situation::kConsumedTailInPlace);
        space.active = true;
        space.reserved = reserved;
        ModelPage& tail = context.model.pages.at(space.pages.back());
        tail.on_host = false;
        tail.new_epoch = is_short;
        tail.coverage = space.frontier % 64;
    } else {
        if (space.frontier % 64 != 0) context.count(Situation::kConsumedTailCopied);
        space = begin_active(context, space, space.frontier, reserved);
    }
    born(context, *made, std::move(space));
    context.model.end_space(id.value);
    expect_joined_runs(context, *made);
}

void freeze_space(SimContext& context) {
    const int way = context.random.below(100);
    const bool ahead = way < 65 && any_space<has_pages_ahead>(context);
    const bool nothing_new = !ahead && way < 75 && any_space<would_freeze_nothing_new>(context);
    const SpaceId id = context.draw_space([&](const ModelSpace& space) {
        if (ahead) return has_pages_ahead(space);
        if (nothing_new) return would_freeze_nothing_new(context, space);
        return way < 85 ? can_freeze(space) && space.reserved > 0 : is_settled(space);
    });
    context.tell("freeze %llx", shown(id.value));
    Expected expected = not_active_settled(context, id);
    if (!expected) {
        const ModelSpace& space = context.model.spaces.at(id.value);
        const int mapped = static_cast<int>(space.pages.size()) * 64;
        if (space.frontier % 64 != 0 && space.reserved == 0) expected = Refusal{kOverReservation, mapped + 64, mapped};
    }
    const auto made = context.attempt(expected, [&] { return context.world.pages().freeze(id); });
    if (!made) return;
    ModelSpace& space = context.model.spaces.at(id.value);
    ModelSpace frozen{.active = false, .frontier = space.frontier, .reserved = 0};
    frozen.pages.assign(space.pages.begin(), space.pages.begin() + pages_for(space.frontier));
    count_freeze(context, space, frozen);
    if (space.frontier % 64 != 0) {
        space.tail_source = frozen.pages.back();
        space.pages[static_cast<std::size_t>(space.frontier / 64)] = context.model.new_page();
        --space.reserved;
    }
    born(context, *made, std::move(frozen));
}

void finish_space(SimContext& context) {
    const SpaceId id = context.draw_space(is_settled);
    context.tell("finish %llx", shown(id.value));
    const Expected expected = not_active_settled(context, id);
    if (!context.attempt(expected, [&] { return context.world.pages().finish(id); })) return;
    ModelSpace& space = context.model.spaces.at(id.value);
    space.active = false;
    space.reserved = 0;
    space.pages.resize(static_cast<std::size_t>(pages_for(space.frontier)));
    context.model.sweep();
    expect_joined_runs(context, id);
}

void share_space(SimContext& context) {
    const bool alone = context.random.percent(60) && any_space<holds_tail_alone>(context);
    const SpaceId id = context.draw_space(
        [&](const ModelSpace& space) { return alone ? holds_tail_alone(context, space) : can_branch(space); });
    const ModelSpace* source = find_space(context, id);
    const int limit = source == nullptr ? 64 : source->frontier;
    // Often within the last page: who then stays alone with it sees less than it holds.
    const bool within = limit % 64 > 1 && (alone || context.random.percent(30));
    const int frontier = within ? limit - context.random.between(1, limit % 64 - 1) : context.draw_frontier(limit);
    share_space(context, id, frontier);
}

SpaceId share_space(SimContext& context, SpaceId id, int frontier) {
    context.tell("share %llx at %d", shown(id.value), frontier);
    const ModelSpace* source = find_space(context, id);
    Expected expected = not_frozen(context, id);
    if (!expected && frontier > source->frontier) expected = Refusal{kBeyondFrontier, frontier, source->frontier};
    const auto made = context.attempt(expected, [&] { return context.world.pages().share(id, frontier); });
    if (!made) return {};
    ModelSpace space{.active = false, .frontier = frontier, .reserved = 0};
    space.pages.assign(source->pages.begin(), source->pages.begin() + pages_for(frontier));
    return born(context, *made, std::move(space));
}

void release_space(SimContext& context) {
    const bool active = context.random.percent(40);
    const bool cuts_short = context.random.percent(85) && any_space<leaves_one_cut_short>(context);
    release_space(context, context.draw_space([&](const ModelSpace& space) {
        if (cuts_short) return leaves_one_cut_short(context, space);
        return space.active == active && (space.pages.empty() || context.model.pins(space.pages.back()) == 0);
    }));
}

void release_space(SimContext& context, SpaceId id) {
    context.tell("release %llx", shown(id.value));
    Expected expected = stale_space(context, id);
    if (!expected) {
        int pins = 0;
        for (const PageKey page : context.model.spaces.at(id.value).pages)
            if (context.model.references(page) == 1) pins += context.model.pins(page);
        if (pins > 0) expected = Refusal{kPinned, 0, pins};
    }
    if (!context.attempt(expected, [&] { return context.world.pages().release(id); })) return;
    const ModelSpace space = context.model.spaces.at(id.value);
    if (!space.pages.empty() && context.model.references(space.pages.front()) > 1)
        context.count(Situation::kReleasedSharing);
    context.model.end_space(id.value);
    expect_joined_after_release(context, space.pages);
}

void drop_page(SimContext& context) {
    const PageId id =
        context.draw_page([&](PageKey page, const ModelPage& item) { return can_drop(context, page, item); });
    const Tier tier = context.random.percent(60) ? Tier::kDevice : Tier::kHost;
    context.tell("drop page %llx from tier %d", shown(id.value), static_cast<int>(tier));
    const PageKey key = context.model.page_of(id.value);
    Expected expected;
    if (key == 0) {
        expected = context.model.page_handles.stale(id.value);
    } else {
        const ModelPage& page = context.model.pages.at(key);
        const bool there = tier == Tier::kDevice ? page.on_device : page.on_host;
        const int pins = context.model.pins(key);
        const int readers = context.model.active_readers(key);
        if (!there)
            expected = Refusal{kNoReplica, static_cast<std::int64_t>(tier), -1};
        else if (!page.on_device || !page.on_host)
            expected = Refusal{kLastReplica, 1, 0};
        else if (pins > 0)
            expected = Refusal{kPinned, 0, pins};
        else if (tier == Tier::kDevice && readers > 0)
            expected = Refusal{kActive, 0, readers};
    }
    if (!context.attempt(expected, [&] { return context.world.pages().drop(id, tier); })) return;
    context.count(Situation::kDroppedOneOfTwo);
    ModelPage& page = context.model.pages.at(key);
    (tier == Tier::kDevice ? page.on_device : page.on_host) = false;
}

void ask_facts(SimContext& context) {
    const SpaceId id = context.draw_space(is_settled);
    context.tell("ask for facts of %llx", shown(id.value));
    const auto ask = [&] { return std::as_const(context.world.pages()).facts(id); };
    context.attempt(stale_space(context, id), ask, SimContext::Effect::kNone);
}

void ask_validity(SimContext& context) {
    const SpaceId id = context.draw_space(is_settled);
    context.tell("ask whether %llx is valid", shown(id.value));
    const auto ask = [&] { return std::as_const(context.world.pages()).valid(id); };
    context.attempt(stale_space(context, id), ask, SimContext::Effect::kNone);
}

void ask_capture_shape(SimContext& context) {
    const bool unsettled = context.random.percent(25);
    const SpaceId id = context.draw_space(
        [&](const ModelSpace& space) { return unsettled ? waits_for_tail(space) : is_settled(space); });
    context.tell("ask how %llx would be captured", shown(id.value));
    const auto ask = [&] { return std::as_const(context.world.pages()).capture_shape(id); };
    context.attempt(not_active_settled(context, id), ask, SimContext::Effect::kNone);
}

}  // namespace ninfer::sim
