#pragma once

// What must be true of the stores, in the plainest form: a page is a record, a space is the list of the pages that it
// sees, a copy is a record. There are no runs and no counters: references, pins and used capacity are counted anew from
// who holds what whenever somebody asks. No code of the stores is used, only their handles as names.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "cpp/state/refusal.h"
#include "cpp/state/replica_copies.h"
#include "tests/sim/keys.h"
#include "tests/sim/store_world.h"

namespace ninfer::sim {

using PageKey = int;  // the model's own name of a page, for the stores name their pages themselves; 0: none

struct ModelPage {
    Key handle = 0;         // 0 until the first look
    Key epoch = 0;          // as last seen
    bool new_epoch = true;  // the next look must find one that was never seen
    int coverage = 0;
    bool on_device = true;
    bool on_host = false;
    std::array<std::uint64_t, 64> values{};  // its bytes, as far as they are covered
};

struct ModelSpace {
    bool active = true;
    int frontier = 0;
    int reserved = 0;
    PageKey tail_source = 0;  // its last page waits for a copy of this one
    std::vector<PageKey> pages = {};
};

struct ModelImage {
    bool active = true;
    bool unsettled = false;
    Key source = 0;
    bool on_device = true;
    bool on_host = false;
    int references = 1;
    Key epoch = 0;
    bool new_epoch = true;
    std::uint64_t value = 0;  // its bytes are derived from it; 0: all zero

    bool borrows() const { return source != 0 && !unsettled; }
};

struct ModelCopy {
    CopyKind kind = CopyKind::kPageToHost;
    CopyTicket ticket = {};
    PageKey page = 0;
    PageKey tail = 0;
    Key space = 0;
    Key image = 0;
    Key restored = 0;
    Key epoch = 0;  // of the source, at the start
    std::size_t bytes = 0;
    std::uint64_t start = 0;  // how many were started before it, and it

    bool of_image() const { return image != 0; }
};

// Handles of one kind that are no longer valid, and the generation of each slot.
class HandleHistory {
   public:
    // A handle that was just made: SimFailure if it ever was one before, or if slots of dead ones are not used again.
    void born(Key handle);
    void died(Key handle);
    // The refusal of a handle that is not alive.
    Refusal stale(Key handle) const;
    const std::vector<Key>& dead() const { return dead_; }
    std::uint32_t slots() const { return static_cast<std::uint32_t>(generations_.size()); }

   private:
    std::map<std::uint32_t, std::uint32_t> generations_;
    std::set<Key> seen_;
    std::vector<Key> dead_;
    std::size_t most_alive_ = 0;
};

class StoreModel {
   public:
    explicit StoreModel(const WorldSize& size) : size_(size) {}

    std::map<PageKey, ModelPage> pages;
    std::map<Key, ModelSpace> spaces;
    std::map<Key, ModelImage> images;
    std::map<Key, ModelCopy> copies;  // whose handle is valid
    std::vector<ModelCopy> draining;  // cancelled, not ended yet by the engine
    HandleHistory space_handles, page_handles, image_handles, copy_handles;
    std::set<Key> page_epochs, image_epochs;  // all that were ever seen
    std::uint64_t copies_started = 0;

    const WorldSize& size() const { return size_; }

    struct PageCounts {
        int references = 0;
        int active_readers = 0;
        int pins = 0;
        bool copying = false;
    };
    // Of every page, counted anew from the spaces and copies.
    std::map<PageKey, PageCounts> recount() const;

    // --- counted anew each time -------------------------------------------------------------------------------------
    int references(PageKey page) const;
    int active_readers(PageKey page) const;
    int pins(PageKey page) const;
    bool copying(PageKey page) const;
    bool writable(PageKey page) const;
    int image_pins(Key image) const;
    bool image_copying(Key image) const;
    UsedVector used() const;
    int pages_free() const;
    int blocks_free() const;
    int active_slots_free() const;
    int checkpoint_slots_free() const;
    PageKey page_of(Key handle) const;  // 0: no such page

    // --- changes ----------------------------------------------------------------------------------------------------
    PageKey new_page();
    // Pages that no space sees are gone.
    void sweep();
    void end_space(Key space);
    void end_image(Key image);
    // The copy's handle is gone: it is published, has been given back, or drains.
    void end_copy(Key copy, bool drains);

    // The whole model as text, for a failure.
    std::string text() const;

   private:
    template <typename Visit>
    void for_each_copy(Visit&& visit) const {
        for (const auto& [key, copy] : copies) visit(copy);
        for (const ModelCopy& copy : draining) visit(copy);
    }

    WorldSize size_;
    PageKey last_page_ = 0;
};

inline int pages_for(int tokens) { return (tokens + 63) / 64; }

}  // namespace ninfer::sim
