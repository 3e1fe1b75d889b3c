#pragma once

// What a target leads to, said page by page with sets of holders: no runs, no beginnings, no sums. Written from
// docs/design/transactions.md, to be compared with what the stores show when the target was carried out.

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "tests/cpp/transaction/stores_world.h"

namespace ninfer::testing_support {

class NaiveTarget {
   public:
    NaiveTarget(StoresWorld& world, const std::vector<KnownHolding>& known, const std::vector<HoldingOutcome>& outcomes,
                const ResourceNeed& need)
        : world_(&world), known_(&known), outcomes_(&outcomes), need_(need), used_before_(world.used()) {
        for (std::size_t h = 0; h < known.size(); ++h) {
            std::int64_t index = 0;
            world.pages.for_each_page(known[h].holding.kv, [&](PageId id, const LogicalPage& page) {
                Page& seen = page_of(id, page);
                seen.holders.push_back({h, index++});
                if (seen.holders.size() == 1) count_outside(seen, page);
            });
            const ImageId image = known[h].holding.image;
            if (world.images != nullptr && std::ranges::find(images_, image, &Image::id) == images_.end())
                images_.push_back({image, *world.images->find(image).value()});
        }
        for (Page& page : pages_)
            page.outside_frozen = page.all_holders - page.readers - static_cast<std::int32_t>(page.holders.size()) > 0;
    }

    // --- on the way ---------------------------------------------------------------------------------------------------
    // How far a transaction came for good: what was open when it was aborted is as if it had never begun.
    enum class Reached { kNow, kReleased, kDemoted, kRestored };

    // Before a step, and what is on its way there.
    struct Moment {
        TransactionPhase phase = {};
        CopyRound round = {};
        std::int64_t copies = 0;

        Reached reached() const {
            if (phase == TransactionPhase::kHostReleases) return Reached::kNow;
            if (round == CopyRound::kDemotion) return Reached::kReleased;
            return round == CopyRound::kRestore ? Reached::kDemoted : Reached::kRestored;
        }
    };
    std::vector<Moment> moments() const {
        std::vector<Moment> all{{TransactionPhase::kHostReleases, CopyRound::kDemotion, 0}};
        const std::array<std::int64_t, 3> copies{demotions(), restored_pages(), activation_copies()};
        for (std::size_t i = 0; i < copies.size(); ++i) {
            const auto round = static_cast<CopyRound>(i);
            all.push_back({TransactionPhase::kCopyPreparation, round, 0});
            if (copies[i] > 0) all.push_back({TransactionPhase::kCopiesInFlight, round, copies[i]});
            all.push_back({TransactionPhase::kCopyPublication, round, copies[i]});
        }
        return all;
    }

    // The largest amount of each axis at any stage, and the room that must be left.
    ResourceAxes peak() const {
        const ResourceAxes demoted = used_at(Reached::kDemoted);
        ResourceAxes demoting = used_at(Reached::kReleased);
        demoting.host_blocks = demoted.host_blocks;
        ResourceAxes activating = used_at(Reached::kRestored);
        if (need_.kind != ResourceNeed::Kind::kRoom) {
            activating.device_pages += moves() ? 0 : own_pages();
            activating.image_slots_active += world_->images == nullptr || image_moves() ? 0 : 1;
        }
        ResourceAxes peak = larger_of(used_before_, used_at(Reached::kReleased));
        for (const ResourceAxes& used : {demoting, demoted, used_at(Reached::kRestored), activating})
            peak = larger_of(peak, used);
        return larger_of(peak, used_in_the_end() + need_.room);
    }

    void expect_reached() {
        for (const Page& page : pages_) expect_page(page, after(page));
        for (const Image& image : images_) expect_image(image, after(image));
        EXPECT_EQ(world_->used(), used_in_the_end());
    }
    // After an abort: the result tells all of it, and nothing else is there.
    void expect_aborted(Reached reached, const TransactionResult& result) {
        for (const Page& page : pages_) expect_page(page, at(page, reached));
        for (const Image& image : images_) expect_image(image, at(image, reached));
        EXPECT_EQ(world_->used(), used_at(reached));
        EXPECT_EQ(result.used, used_at(reached));
        EXPECT_EQ(result.changed, has_changed(reached));
        EXPECT_EQ(result.kv, SpaceId{});
        EXPECT_EQ(result.image, ImageId{});
        ASSERT_EQ(result.holdings.size(), known_->size());
        for (std::size_t i = 0; i < known_->size(); ++i) expect_holding(i, reached, result.holdings[i]);
    }

    // A tail that nobody else will see is written in place.
    bool moves() const {
        if (!consumes() || need_.frontier < std::ssize(known(need_.source).tokens)) return false;
        if (is_aligned(need_.frontier)) return true;
        for (const Page& page : pages_)
            if (index_in(page, need_.source) == need_.frontier / kPageTokens)
                return !page.outside_frozen && page.readers == 0 &&
                       !any_survivor(page, [](auto&, auto) { return true; });
        return false;
    }

   private:
    struct Holder {
        std::size_t holding = 0;
        std::int64_t index = 0;
    };
    struct Page {
        PageId id;
        bool on_device = false;
        bool on_host = false;
        std::vector<Holder> holders;
        std::int32_t all_holders = 0;
        std::int32_t readers = 0;
        bool outside_frozen = false;
    };
    struct Image {
        ImageId id;
        StateImage before;
    };
    struct Placed {
        bool exists = false;
        bool on_device = false;
        bool on_host = false;
    };

    bool has_source() const { return need_.kind == ResourceNeed::Kind::kSource; }
    bool consumes() const { return has_source() && need_.consumes; }
    const KnownHolding& known(std::int32_t holding) const { return (*known_)[static_cast<std::size_t>(holding)]; }

    Page& page_of(PageId id, const LogicalPage& page) {
        const auto found = std::ranges::find(pages_, id, &Page::id);
        if (found != pages_.end()) return *found;
        Page& added = pages_.emplace_back();
        added.id = id;
        added.on_device = page.on_device();
        added.on_host = page.on_host();
        return added;
    }
    void count_outside(Page& seen, const LogicalPage& page) {
        seen.all_holders = world_->pages.references(page);
        world_->pages.for_each_space([&](SpaceId space, const AddressSpace& state) {
            if (!state.active) return;
            world_->pages.for_each_page(space,
                                        [&](PageId other, const LogicalPage&) { seen.readers += other == seen.id; });
        });
    }
    static std::optional<std::int64_t> index_in(const Page& page, std::int32_t holding) {
        for (const Holder& holder : page.holders)
            if (holder.holding == static_cast<std::size_t>(holding)) return holder.index;
        return std::nullopt;
    }
    // Of the holdings besides the source that keep the page.
    template <typename Wants>
    bool any_survivor(const Page& page, Wants&& wants) const {
        return std::ranges::any_of(page.holders, [&](const Holder& holder) {
            const HoldingOutcome& outcome = (*outcomes_)[holder.holding];
            const bool is_source = has_source() && holder.holding == static_cast<std::size_t>(need_.source);
            return !is_source && outcome.survives && holder.index < pages_of(outcome.frontier) &&
                   wants(outcome, holder.index);
        });
    }

    // The source is there until the commit, whatever becomes of it then.
    struct Wants {
        bool kept = false;
        bool on_device = false;
        bool on_host = false;
    };
    Wants wants_of(const Page& page) const {
        const auto in_source = index_in_source(page);
        const bool outside = page.outside_frozen || page.readers > 0;
        const bool source_wants_host = in_source && !(*outcomes_)[static_cast<std::size_t>(need_.source)].drops_host;
        Wants wants;
        wants.kept = outside || in_source || any_survivor(page, [](auto&, auto) { return true; });
        wants.on_device =
            outside || in_source || any_survivor(page, [](const HoldingOutcome& outcome, std::int64_t index) {
                return index < outcome.device_pages;
            });
        wants.on_host =
            page.outside_frozen || source_wants_host ||
            any_survivor(page, [](const HoldingOutcome& outcome, std::int64_t) { return !outcome.drops_host; });
        return wants;
    }
    std::optional<std::int64_t> index_in_source(const Page& page) const {
        return has_source() ? index_in(page, need_.source) : std::nullopt;
    }
    bool is_restored(const Page& page) const {
        const auto in_source = index_in_source(page);
        return !page.on_device && in_source && *in_source < pages_of(need_.frontier);
    }
    // A page that is written has no other replica.
    bool is_written(const Page& page) const {
        return moves() && !is_aligned(need_.frontier) && index_in_source(page) == need_.frontier / kPageTokens;
    }

    Placed at(const Page& page, Reached reached) const {
        Placed placed{true, page.on_device, page.on_host};
        if (reached == Reached::kNow) return placed;
        const Wants wants = wants_of(page);
        if (!wants.kept) return {};
        if (page.on_device && page.on_host) {
            placed.on_device = wants.on_device;
            placed.on_host = !wants.on_device || wants.on_host || is_written(page);
        } else if (page.on_device && !wants.on_device && reached != Reached::kReleased) {
            placed = {true, false, true};
        } else if (is_restored(page) && reached == Reached::kRestored) {
            placed.on_device = true;
        }
        return placed;
    }
    Placed after(const Page& page) const {
        const auto in_source = index_in_source(page);
        const bool outside = page.outside_frozen || page.readers > 0;
        const bool others = outside || any_survivor(page, [](auto&, auto) { return true; });
        const std::int64_t shared = moves() ? pages_of(need_.frontier) : need_.frontier / kPageTokens;
        Placed placed;
        placed.exists = others || (in_source && (!consumes() || *in_source < shared));
        if (!placed.exists) return placed;
        const Wants wants = wants_of(page);
        placed.on_device = page.on_device ? wants.on_device : is_restored(page);
        placed.on_host = !placed.on_device || (page.on_host && wants.on_host && !is_written(page));
        return placed;
    }

    // Pages that the new sequence has beyond those that it shares.
    std::int64_t own_pages() const {
        if (need_.kind == ResourceNeed::Kind::kRoom) return 0;
        if (!has_source()) return need_.pages;
        return need_.pages - (moves() ? pages_of(need_.frontier) : need_.frontier / kPageTokens);
    }

    struct ImageWants {
        bool outside = false;
        bool others_remain = false;
        bool source_has_it = false;
        bool on_device = false;
        bool on_host = false;
    };
    ImageWants wants_of(const Image& image) const {
        ImageWants wants;
        std::int32_t inside = 0;
        for (std::size_t holding = 0; holding < known_->size(); ++holding) {
            if (known_->at(holding).holding.image != image.id) continue;
            const HoldingOutcome& outcome = (*outcomes_)[holding];
            const bool is_source = has_source() && holding == static_cast<std::size_t>(need_.source);
            ++inside;
            wants.source_has_it = wants.source_has_it || is_source;
            wants.on_host = wants.on_host || (is_source && outcome.image != ImageOutcome::kDeviceOnly);
            if (is_source || !outcome.survives) continue;
            wants.others_remain = true;
            wants.on_device = wants.on_device || outcome.image != ImageOutcome::kHostOnly;
            wants.on_host = wants.on_host || outcome.image != ImageOutcome::kDeviceOnly;
        }
        wants.outside = image.before.references > inside;
        wants.on_device = wants.on_device || wants.outside || wants.source_has_it;
        wants.on_host = wants.on_host || wants.outside;
        return wants;
    }
    Placed at(const Image& image, Reached reached) const {
        Placed placed{true, image.before.on_device(), image.before.on_host()};
        if (reached == Reached::kNow) return placed;
        const ImageWants wants = wants_of(image);
        if (!wants.outside && !wants.others_remain && !wants.source_has_it) return {};
        if (placed.on_device && placed.on_host)
            placed = {true, wants.on_device, !wants.on_device || wants.on_host};
        else if (placed.on_device && !wants.on_device && reached != Reached::kReleased)
            placed = {true, false, true};
        return placed;
    }
    Placed after(const Image& image) const {
        const ImageWants wants = wants_of(image);
        if (!wants.outside && !wants.others_remain && consumes()) return {};
        return at(image, Reached::kRestored);
    }
    const Image* source_image() const {
        if (!has_source() || world_->images == nullptr) return nullptr;
        return &*std::ranges::find(images_, known(need_.source).holding.image, &Image::id);
    }
    bool image_moves() const {
        const Image* image = source_image();
        return image != nullptr && image->before.on_device() && !after(*image).exists;
    }

    // --- amounts ------------------------------------------------------------------------------------------------------
    template <typename PlacedOf>
    ResourceAxes used(PlacedOf&& placed_of) const {
        ResourceAxes used = used_before_;
        const auto change = [](bool now, bool before) { return (now ? 1 : 0) - (before ? 1 : 0); };
        for (const Page& page : pages_) {
            const Placed placed = placed_of(page);
            used.device_pages += change(placed.on_device, page.on_device);
            used.host_blocks += change(placed.on_host, page.on_host) * StoresWorld::kPageBlocks;
        }
        for (const Image& image : images_) {
            const Placed placed = placed_of(image);
            used.image_slots_checkpoint += change(placed.on_device, image.before.on_device());
            used.host_blocks += change(placed.on_host, image.before.on_host()) * StoresWorld::kImageBlocks;
        }
        return used;
    }
    ResourceAxes used_at(Reached reached) const {
        return used([&](const auto& object) { return at(object, reached); });
    }
    ResourceAxes used_in_the_end() const {
        ResourceAxes all = used([&](const auto& object) { return after(object); });
        all.device_pages += own_pages();
        all.image_slots_active += need_.kind == ResourceNeed::Kind::kRoom || world_->images == nullptr ? 0 : 1;
        return all;
    }
    std::int64_t demotions() const {
        const auto is_demoted = [&](const auto& object) {
            return at(object, Reached::kReleased).on_device && !at(object, Reached::kDemoted).on_device;
        };
        return std::ranges::count_if(pages_, is_demoted) + std::ranges::count_if(images_, is_demoted);
    }
    std::int64_t restored_pages() const {
        return std::ranges::count_if(pages_, [&](const Page& page) { return is_restored(page); });
    }
    std::int64_t activation_copies() const {
        const bool copies_tail = has_source() && !moves() && !is_aligned(need_.frontier);
        const Image* image = source_image();
        return (copies_tail ? 1 : 0) + (image != nullptr && !image->before.on_device() ? 1 : 0);
    }
    bool has_changed(Reached reached) const {
        if (reached == Reached::kNow) return false;
        bool changed = demotions() > 0 && reached != Reached::kReleased;
        changed = changed || (restored_pages() > 0 && reached == Reached::kRestored);
        for (std::size_t i = 0; i < known_->size(); ++i)
            changed =
                changed || !(*outcomes_)[i].survives || (*outcomes_)[i].frontier < std::ssize((*known_)[i].tokens);
        const auto is_dropped = [&](const auto& object) {
            const Placed before = at(object, Reached::kNow);
            const Placed released = at(object, Reached::kReleased);
            return before.on_device != released.on_device || before.on_host != released.on_host;
        };
        return changed || std::ranges::any_of(pages_, is_dropped) || std::ranges::any_of(images_, is_dropped);
    }

    // --- comparisons --------------------------------------------------------------------------------------------------
    void expect_page(const Page& page, const Placed& expected) {
        const auto found = world_->pages.find(page.id);
        ASSERT_EQ(found.has_value(), expected.exists);
        if (!found) return;
        EXPECT_EQ(found.value()->on_device(), expected.on_device);
        EXPECT_EQ(found.value()->on_host(), expected.on_host);
    }
    void expect_image(const Image& image, const Placed& expected) {
        const auto found = world_->images->find(image.id);
        ASSERT_EQ(found.has_value(), expected.exists);
        if (!found) return;
        EXPECT_EQ(found.value()->on_device(), expected.on_device);
        EXPECT_EQ(found.value()->on_host(), expected.on_host);
    }
    void expect_holding(std::size_t holding, Reached reached, const HoldingResult& found) {
        const HoldingOutcome& outcome = (*outcomes_)[holding];
        const bool released = reached != Reached::kNow;
        EXPECT_EQ(found.removed, released && !outcome.survives);
        if (found.removed) return;
        const std::int64_t before = std::ssize((*known_)[holding].tokens);
        const std::int64_t frontier = released ? std::min(before, outcome.frontier) : before;
        HoldingPlacement expected{.pages = pages_of(frontier)};
        for (const Page& page : pages_) {
            const auto index = index_in(page, static_cast<std::int32_t>(holding));
            if (!index || *index >= expected.pages) continue;
            const Placed placed = at(page, reached);
            expected.pages_on_device += placed.on_device ? 1 : 0;
            expected.pages_on_host += placed.on_host ? 1 : 0;
        }
        for (const Image& image : images_) {
            if (image.id != (*known_)[holding].holding.image) continue;
            expected.image_on_device = at(image, reached).on_device;
            expected.image_on_host = at(image, reached).on_host;
        }
        EXPECT_EQ(found.frontier, frontier);
        EXPECT_EQ(found.placement, expected);
    }

    StoresWorld* world_;
    const std::vector<KnownHolding>* known_;
    const std::vector<HoldingOutcome>* outcomes_;
    ResourceNeed need_;
    ResourceAxes used_before_;
    std::vector<Page> pages_;
    std::vector<Image> images_;
};

}  // namespace ninfer::testing_support
