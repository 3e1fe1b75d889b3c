#pragma once

// Handles: slot in the low 32 bits, generation in the high ones. Generation 0 is never valid, so a zero handle is none.
// A slot's generation moves on whenever its item goes, so a handle of something gone is recognised and refused.

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "cpp/base/assert.h"
#include "cpp/base/result.h"
#include "cpp/state/fingerprint.h"
#include "cpp/state/refusal.h"

namespace ninfer {

template <typename Tag>
struct Handle {
    std::uint64_t value = 0;

    std::uint32_t slot() const noexcept { return static_cast<std::uint32_t>(value); }
    std::uint32_t generation() const noexcept { return static_cast<std::uint32_t>(value >> 32); }
    bool operator==(const Handle&) const = default;
};

// Items by handle. Pointers to items are valid until the next insert. An insert that finds no memory has changed nothing;
// erase allocates none.
template <typename Item, typename Tag>
class HandleTable {
   public:
    using ItemHandle = Handle<Tag>;

    // Tables whose handles could be mistaken for each other's start their generations far apart.
    explicit HandleTable(std::uint32_t first_generation = 1) : first_generation_(first_generation) {}

    ItemHandle insert(Item item) {
        if (free_.empty()) add_slot();
        const std::uint32_t slot = free_.back();
        free_.pop_back();
        entries_[slot].item = std::move(item);
        entries_[slot].used = true;
        ++size_;
        return handle_of(slot);
    }

    // Refused with kStaleHandle: wanted the handle's generation, found the slot's (0 for a slot that never was).
    Result<Item*, Refusal> find(ItemHandle handle) {
        if (Item* item = lookup(handle)) return item;
        return stale(handle);
    }
    Result<const Item*, Refusal> find(ItemHandle handle) const {
        if (const Item* item = const_cast<HandleTable*>(this)->lookup(handle)) return item;
        return stale(handle);
    }

    // The handle must be valid.
    Item& at(ItemHandle handle) {
        Item* item = lookup(handle);
        NINFER_ASSERT(item != nullptr, "a handle that was checked before is stale");
        return *item;
    }
    const Item& at(ItemHandle handle) const { return const_cast<HandleTable*>(this)->at(handle); }

    Item erase(ItemHandle handle) {
        Item item = std::move(at(handle));
        Entry& entry = entries_[handle.slot()];
        entry.item = Item{};
        entry.used = false;
        // Generation 0 stays invalid when the count wraps around.
        if (++entry.generation == 0) entry.generation = 1;
        free_.push_back(handle.slot());
        --size_;
        return item;
    }

    // Until `items` of them are there at once, inserts allocate nothing.
    void reserve(std::int64_t items) {
        entries_.reserve(static_cast<std::size_t>(items));
        free_.reserve(static_cast<std::size_t>(items));
    }

    std::int64_t size() const noexcept { return size_; }
    std::size_t memory_bytes() const {
        return entries_.capacity() * sizeof(Entry) + free_.capacity() * sizeof(std::uint32_t);
    }

    // Handles, free slots, and of each item what add_item(fingerprint, item) adds.
    template <typename AddItem>
    void add_to(Fingerprint& fingerprint, AddItem&& add_item) const {
        for (const Entry& entry : entries_) {
            fingerprint.add(entry.generation);
            fingerprint.add(entry.used);
            if (entry.used) add_item(fingerprint, entry.item);
        }
        for (const std::uint32_t slot : free_) fingerprint.add(slot);
    }

    // Calls visit(handle, item) for each, in the order of slots.
    template <typename Visit>
    void for_each(Visit&& visit) const {
        for (std::uint32_t slot = 0; slot < entries_.size(); ++slot)
            if (entries_[slot].used) visit(handle_of(slot), entries_[slot].item);
    }

   private:
    struct Entry {
        std::uint32_t generation = 1;
        bool used = false;
        Item item{};
    };

    // The free list gets room for every slot before the slot is there, so that giving it back never allocates.
    void add_slot() {
        NINFER_ASSERT_LT(std::ssize(entries_), std::int64_t{UINT32_MAX});
        if (free_.capacity() <= entries_.size()) free_.reserve(2 * entries_.size() + 1);
        entries_.emplace_back().generation = first_generation_;
        free_.push_back(static_cast<std::uint32_t>(entries_.size() - 1));
    }
    ItemHandle handle_of(std::uint32_t slot) const {
        return {static_cast<std::uint64_t>(entries_[slot].generation) << 32 | slot};
    }
    Item* lookup(ItemHandle handle) {
        if (handle.slot() >= entries_.size()) return nullptr;
        Entry& entry = entries_[handle.slot()];
        return entry.used && entry.generation == handle.generation() ? &entry.item : nullptr;
    }
    Refusal stale(ItemHandle handle) const {
        const std::int64_t found = handle.slot() < entries_.size() ? entries_[handle.slot()].generation : 0;
        return {RefusalKind::kStaleHandle, handle.generation(), found};
    }

    std::uint32_t first_generation_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> free_;
    std::int64_t size_ = 0;
};

}  // namespace ninfer
