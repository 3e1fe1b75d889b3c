#pragma once

// Which spaces, pages, images and copies an operation can do something with: most draws take one of them, and an operation
// that has none is mostly left for another one.

#include <algorithm>
#include <type_traits>

#include "tests/sim/sim_context.h"

namespace ninfer::sim {

inline bool is_settled(const ModelSpace& space) { return space.active && space.tail_source == 0; }
inline bool can_grow(const ModelSpace& space) { return is_settled(space) && space.reserved > 0; }
inline bool can_write(const ModelSpace& space) {
    return is_settled(space) && space.frontier < static_cast<int>(space.pages.size()) * 64;
}
inline bool has_written(const ModelSpace& space) { return is_settled(space) && space.frontier > 0; }
inline bool can_freeze(const ModelSpace& space) { return has_written(space) && space.frontier % 64 != 0; }
inline bool can_branch(const ModelSpace& space) { return !space.active && space.frontier > 0; }
inline bool waits_for_tail(const ModelSpace& space) { return space.tail_source != 0; }

inline bool has_both(const ModelPage& page) { return page.on_device && page.on_host; }
inline bool can_move(const ModelPage& page) { return page.coverage > 0 && !has_both(page); }

inline bool is_own(const ModelImage& image) { return image.active && image.source == 0; }
inline bool can_compute(const ModelImage& image) { return image.active && !image.unsettled; }
inline bool is_frozen(const ModelImage& image) { return !image.active; }
inline bool can_fork(const ModelImage& image) { return !image.active && image.on_device; }
inline bool can_consume(const ModelImage& image) { return can_fork(image) && image.references == 1; }
inline bool can_restore(const ModelImage& image) { return !image.active && image.on_host; }
inline bool has_both_tiers(const ModelImage& image) { return image.on_device && image.on_host; }
inline bool can_copy(const ModelImage& image) { return !image.active && !has_both_tiers(image); }
inline bool waits_for_bytes(const ModelImage& image) { return image.unsettled; }

// Ways of an operation that hardly come about by themselves.
inline bool has_pages_ahead(const ModelSpace& space) {
    return has_written(space) && space.reserved > 0 && static_cast<int>(space.pages.size()) > pages_for(space.frontier);
}
// Another one could see less of its tail, and they two alone see it.
inline bool holds_tail_alone(const SimContext& context, const ModelSpace& space) {
    return !space.active && space.frontier % 64 > 1 && context.model.references(space.pages.back()) == 1;
}
// It sees less of its tail than the tail holds, and nobody sees more; it can be consumed.
inline bool is_cut_short(const SimContext& context, const ModelSpace& space) {
    if (space.active || space.frontier % 64 == 0) return false;
    const auto is_there = [&](PageKey page) { return context.model.pages.at(page).on_device; };
    return context.model.pages.at(space.pages.back()).coverage != space.frontier % 64 &&
           context.model.references(space.pages.back()) == 1 && context.model.pins(space.pages.back()) == 0 &&
           std::ranges::all_of(space.pages, is_there);
}
// Once it is gone, such a one is left.
inline bool leaves_one_cut_short(const SimContext& context, const ModelSpace& space) {
    if (space.active || space.frontier % 64 == 0) return false;
    const bool sees_less = std::ranges::any_of(context.model.spaces, [&](const auto& item) {
        const ModelSpace& other = item.second;
        return !other.active && other.frontier < space.frontier && !other.pages.empty() &&
               other.pages.back() == space.pages.back();
    });
    return sees_less && context.model.references(space.pages.back()) == 2;
}
inline bool would_freeze_nothing_new(const SimContext& context, const ModelSpace& space) {
    if (!has_written(space) || space.frontier % 64 != 0) return false;
    return context.model.references(space.pages[static_cast<std::size_t>(space.frontier / 64 - 1)]) > 1;
}

// The same for what depends on who else there is.
inline bool can_start_tail(const SimContext& context, const ModelSpace& space) {
    if (!waits_for_tail(space)) return false;
    return !context.model.copying(space.pages[static_cast<std::size_t>(space.frontier / 64)]);
}
inline bool can_drop(const SimContext& context, PageKey key, const ModelPage& page) {
    return has_both(page) && context.model.pins(key) == 0;
}
inline bool can_start_page(const SimContext& context, PageKey key, const ModelPage& page) {
    return can_move(page) && !context.model.copying(key) && !context.model.writable(key);
}
inline bool can_drop_image(const SimContext& context, Key key, const ModelImage& image) {
    return has_both_tiers(image) && context.model.image_pins(key) == 0;
}
inline bool can_start_image(const SimContext& context, Key key, const ModelImage& image) {
    return can_copy(image) && !context.model.image_copying(key);
}
inline bool can_start_restore(const SimContext& context, Key key, const ModelImage& image) {
    return waits_for_bytes(image) && !context.model.image_copying(key);
}
inline bool can_start_snapshot(const SimContext& context, Key key, const ModelImage& image) {
    return is_own(image) && !context.model.image_copying(key);
}

template <auto kWanted, typename Map>
bool any_of(SimContext& context, const Map& map) {
    for (const auto& [key, item] : map) {
        if constexpr (std::is_invocable_v<decltype(kWanted), decltype(item)>) {
            if (kWanted(item)) return true;
        } else if constexpr (std::is_invocable_v<decltype(kWanted), SimContext&, decltype(item)>) {
            if (kWanted(context, item)) return true;
        } else {
            if (kWanted(context, key, item)) return true;
        }
    }
    return false;
}
template <auto kWanted>
bool any_space(SimContext& context) {
    return any_of<kWanted>(context, context.model.spaces);
}
template <auto kWanted>
bool any_page(SimContext& context) {
    return any_of<kWanted>(context, context.model.pages);
}
template <auto kWanted>
bool any_image(SimContext& context) {
    return any_of<kWanted>(context, context.model.images);
}
template <auto kWanted>
bool any_copy(SimContext& context) {
    return any_of<kWanted>(context, context.model.copies);
}
inline bool is_copy(const ModelCopy&) { return true; }
inline bool has_begun(SimContext& context, const ModelCopy& copy) {
    return context.world.engine().outcome(copy.ticket) != CopyStatus::kPending ||
           context.world.engine().moved(copy.ticket) > 0;
}
inline bool is_done(SimContext& context, const ModelCopy& copy) {
    return context.world.engine().outcome(copy.ticket) == CopyStatus::kDone;
}
// Whether something can be copied to the tier, and there is room for it.
inline bool can_copy_page_to(SimContext& context, Tier tier) {
    const int free = tier == Tier::kHost ? context.model.blocks_free() / context.world.size().blocks_per_page()
                                         : context.model.pages_free();
    return free > 0 && std::ranges::any_of(context.model.pages, [&](const auto& item) {
               return can_start_page(context, item.first, item.second) &&
                      item.second.on_device == (tier == Tier::kHost);
           });
}
inline bool can_copy_image_to(SimContext& context, Tier tier) {
    const int free = tier == Tier::kHost ? context.model.blocks_free() / context.world.size().blocks_per_image()
                                         : context.model.checkpoint_slots_free();
    return free > 0 && std::ranges::any_of(context.model.images, [&](const auto& item) {
               return can_start_image(context, item.first, item.second) &&
                      item.second.on_device == (tier == Tier::kHost);
           });
}
inline bool any_image_to_snapshot(SimContext& context) {
    return context.model.blocks_free() >= context.world.size().blocks_per_image() &&
           any_image<can_start_snapshot>(context);
}
inline bool any_page_to_copy(SimContext& context) {
    return can_copy_page_to(context, Tier::kHost) || can_copy_page_to(context, Tier::kDevice);
}
inline bool any_image_to_copy(SimContext& context) {
    return can_copy_image_to(context, Tier::kHost) || can_copy_image_to(context, Tier::kDevice);
}
inline bool any_job(SimContext& context) { return !context.model.copies.empty() || !context.model.draining.empty(); }
inline bool has_pages(SimContext& context) { return context.model.pages_free() > 0; }
template <auto kWanted>
bool any_space_with_room(SimContext& context) {
    return has_pages(context) && any_space<kWanted>(context);
}
inline bool has_slots(SimContext& context) { return context.model.active_slots_free() > 0; }
template <auto kWanted>
bool any_image_with_slot(SimContext& context) {
    return has_slots(context) && any_image<kWanted>(context);
}
template <auto kWanted>
bool any_image_with_checkpoint_slot(SimContext& context) {
    return context.model.checkpoint_slots_free() > 0 && any_image<kWanted>(context);
}
inline bool many_spaces(SimContext& context) {
    return context.model.spaces.size() > 5 || (context.model.spaces.size() > 2 && context.model.pages_free() < 2);
}
inline bool can_share(SimContext& context) {
    return context.model.spaces.size() < 12 && any_space<can_branch>(context);
}
inline bool can_release(SimContext& context) {
    return many_spaces(context) || any_space<leaves_one_cut_short>(context);
}
inline bool can_consume_space(SimContext& context) {
    return any_space_with_room<can_branch>(context) || any_space<is_cut_short>(context);
}
inline bool many_images(SimContext& context) { return context.model.images.size() > 4 || !has_slots(context); }

}  // namespace ninfer::sim
