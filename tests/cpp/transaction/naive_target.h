#pragma once

// What a target leads to, said page by page with sets of holders: no runs, no beginnings, no sums. Written from
// docs/design/transactions.md, to be compared with what the stores show when the target was carried out.

#include <algorithm>
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

    void expect_reached() {
        std::int64_t device_pages = used_before_.device_pages;
        for (const Page& page : pages_) {
            const auto found = world_->pages.find(page.id);
            const Placed expected = after(page);
            EXPECT_EQ(found.has_value(), expected.exists);
            if (found) {
                EXPECT_EQ(found.value()->on_device(), expected.on_device);
                EXPECT_EQ(found.value()->on_host(), expected.on_host);
            }
            device_pages += (expected.exists && expected.on_device ? 1 : 0) - (page.on_device ? 1 : 0);
        }
        EXPECT_EQ(world_->used().device_pages, device_pages + own_pages());
        for (const Image& image : images_) expect_image(image);
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

    Placed after(const Page& page) const {
        const auto in_source = has_source() ? index_in(page, need_.source) : std::nullopt;
        const bool outside = page.outside_frozen || page.readers > 0;
        const bool kept = any_survivor(page, [](auto&, auto) { return true; });
        const std::int64_t shared = moves() ? pages_of(need_.frontier) : need_.frontier / kPageTokens;
        Placed placed;
        placed.exists = outside || kept || (in_source && (!consumes() || *in_source < shared));
        const bool wanted_on_device =
            outside || in_source || any_survivor(page, [](const HoldingOutcome& outcome, std::int64_t index) {
                return index < outcome.device_pages;
            });
        const bool source_wants_host = in_source && !(*outcomes_)[static_cast<std::size_t>(need_.source)].drops_host;
        const bool wanted_on_host =
            page.outside_frozen || source_wants_host ||
            any_survivor(page, [](const HoldingOutcome& outcome, std::int64_t) { return !outcome.drops_host; });
        const bool restored = !page.on_device && in_source && *in_source < pages_of(need_.frontier);
        placed.on_device = page.on_device ? wanted_on_device : restored;
        placed.on_host = !placed.on_device || (page.on_host && wanted_on_host);
        // A page that is written has no other replica.
        const bool written = moves() && !is_aligned(need_.frontier) && in_source == need_.frontier / kPageTokens;
        placed.on_host = placed.on_host && !written;
        return placed;
    }

    // Pages that the new sequence has beyond those that it shares.
    std::int64_t own_pages() const {
        if (need_.kind == ResourceNeed::Kind::kRoom) return 0;
        if (!has_source()) return need_.pages;
        return need_.pages - (moves() ? pages_of(need_.frontier) : need_.frontier / kPageTokens);
    }

    void expect_image(const Image& image) {
        std::int32_t inside = 0;
        bool others_remain = false;
        bool source_has_it = false;
        bool wanted_on_device = false;
        bool wanted_on_host = false;
        for (std::size_t holding = 0; holding < known_->size(); ++holding) {
            if (known_->at(holding).holding.image != image.id) continue;
            const HoldingOutcome& outcome = (*outcomes_)[holding];
            const bool is_source = has_source() && holding == static_cast<std::size_t>(need_.source);
            ++inside;
            source_has_it = source_has_it || is_source;
            wanted_on_host = wanted_on_host || (is_source && outcome.image != ImageOutcome::kDeviceOnly);
            if (is_source || !outcome.survives) continue;
            others_remain = true;
            wanted_on_device = wanted_on_device || outcome.image != ImageOutcome::kHostOnly;
            wanted_on_host = wanted_on_host || outcome.image != ImageOutcome::kDeviceOnly;
        }
        const bool outside = image.before.references > inside;
        const auto found = world_->images->find(image.id);
        EXPECT_EQ(found.has_value(), outside || others_remain || (source_has_it && !consumes()));
        if (!found) return;
        const bool on_device = image.before.on_device() && (wanted_on_device || outside || source_has_it);
        const bool on_host = !on_device || (image.before.on_host() && (wanted_on_host || outside));
        EXPECT_EQ(found.value()->on_device(), on_device);
        EXPECT_EQ(found.value()->on_host(), on_host);
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
