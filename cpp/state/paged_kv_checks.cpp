// The invariants of paged_kv_store.h, recounted from pages and spaces; its fingerprint and its size.

#include <map>
#include <unordered_map>

#include "cpp/base/assert.h"
#include "cpp/state/page_count.h"
#include "cpp/state/paged_kv_store.h"

namespace ninfer {

void PagedKvStore::check_invariants(const PageHoldings& copies) const {
    check_pages(copies);
    check_pins(copies);
    check_runs();
    check_spaces();
}

void PagedKvStore::check_pages(const PageHoldings& copies) const {
    std::vector<std::int32_t> taken = copies.device_pages;
    std::int64_t copying = 0;
    pages_.for_each([&](PageId, const LogicalPage& page) {
        NINFER_ASSERT(page.on_device() || page.on_host(), "a page has no replica");
        NINFER_ASSERT_LE(0, page.coverage);
        NINFER_ASSERT_LE(page.coverage, kPageTokens);
        NINFER_ASSERT_LT(0, page.epoch);
        NINFER_ASSERT_LE(page.epoch, last_epoch_);
        if (page.on_device()) taken.push_back(page.device_page);
        if (page.on_host()) {
            NINFER_ASSERT_EQ(page.host.count, blocks_per_page_);
            NINFER_ASSERT_EQ(page.host_epoch, page.epoch);
        }
        if (writable(page)) {
            NINFER_ASSERT_EQ(references(page), 1);
            NINFER_ASSERT(page.on_device() && !page.on_host(), "a page with a writer is not on Device alone");
        }
        copying += page.copying ? 1 : 0;
    });
    device_.check_invariants(taken);
    NINFER_ASSERT_EQ(copying, std::ssize(copies.copying));
    for (const PageId page : copies.copying) NINFER_ASSERT(pages_.at(page).copying, "an open copy left no mark");
}

void PagedKvStore::check_pins(const PageHoldings& copies) const {
    std::unordered_map<std::uint64_t, std::int32_t> pins;
    for (const PageId page : copies.pins) ++pins[page.value];
    spaces_.for_each([&](SpaceId, const AddressSpace& space) {
        if (space.unsettled()) ++pins[space.tail_source.value];
    });
    pages_.for_each([&](PageId id, const LogicalPage& page) {
        const auto found = pins.find(id.value);
        NINFER_ASSERT_EQ(page.pins, found == pins.end() ? 0 : found->second);
    });
    for (const auto& [page, count] : pins) NINFER_ASSERT_EQ(pages_.at(PageId{page}).pins, count);
}

void PagedKvStore::check_runs() const {
    std::vector<RunId> ends;
    std::map<std::int32_t, std::int32_t> readers;
    spaces_.for_each([&](SpaceId, const AddressSpace& space) {
        ends.push_back(space.last);
        if (space.active) runs_.for_each_of(space.last, [&](RunId id, const PageRuns::Run&) { ++readers[id.value]; });
    });
    runs_.check_invariants(ends);
    std::int64_t listed = 0;
    runs_.for_each([&](RunId id, const PageRuns::Run& run) {
        PageRunData counts{.readers = readers[id.value]};
        for (const PageId member : run.elements) {
            const LogicalPage& page = pages_.at(member);
            NINFER_ASSERT_EQ(page.run.value, id.value);
            counts.on_device += page.on_device() ? 1 : 0;
            counts.on_host += page.on_host() ? 1 : 0;
            counts.pins += page.pins;
        }
        NINFER_ASSERT_EQ(run.data.readers, counts.readers);
        NINFER_ASSERT_EQ(run.data.on_device, counts.on_device);
        NINFER_ASSERT_EQ(run.data.on_host, counts.on_host);
        NINFER_ASSERT_EQ(run.data.pins, counts.pins);
        if (run.elements.empty()) NINFER_ASSERT_EQ(run.children, 0);
        listed += run.size();
    });
    NINFER_ASSERT_EQ(listed, pages_.size());
}

void PagedKvStore::check_spaces() const {
    std::int64_t reserved = 0;
    spaces_.for_each([&](SpaceId, const AddressSpace& space) {
        const std::int64_t needed = pages_of(space.frontier);
        const std::int64_t unsettled_tail = space.unsettled() ? needed - 1 : -1;
        runs_.for_each_of(space.last, [&](RunId, const PageRuns::Run& run) {
            for (std::int64_t i = 0; i < run.size(); ++i) {
                const LogicalPage& page = pages_.at(run.elements[static_cast<std::size_t>(i)]);
                const std::int64_t index = run.begin + i;
                if (index != unsettled_tail)
                    NINFER_ASSERT_LE(needed_coverage(space.frontier, index), page.coverage);
                else
                    NINFER_ASSERT_EQ(page.coverage, 0);
                if (space.active) {
                    NINFER_ASSERT_EQ(page.device_page, space.page_table[static_cast<std::size_t>(index)]);
                }
            }
        });
        reserved += space.reserved;
        if (space.active) return check_active(space);
        NINFER_ASSERT_EQ(runs_.length(space.last), needed);
        NINFER_ASSERT_EQ(space.reserved, 0);
        NINFER_ASSERT(!space.unsettled(), "a frozen space is unsettled");
        NINFER_ASSERT(space.page_table.empty(), "a frozen space has a page table");
    });
    NINFER_ASSERT_EQ(reserved, device_.pages_reserved());
}

void PagedKvStore::check_active(const AddressSpace& space) const {
    NINFER_ASSERT_LE(pages_of(space.frontier), space.pages_mapped());
    NINFER_ASSERT_EQ(runs_.length(space.last), space.pages_mapped());
    NINFER_ASSERT_LE(0, space.reserved);
    const PageRuns::Run& leaf = runs_.run(space.last);
    NINFER_ASSERT_EQ(leaf.holders, 1);
    NINFER_ASSERT_LE(leaf.begin, space.frontier / kPageTokens);
    // What is written or mapped next lies in the leaf, without heap allocation.
    NINFER_ASSERT_LE(leaf.size() + space.reserved, static_cast<std::int64_t>(leaf.elements.capacity()));
    NINFER_ASSERT_LE(space.pages_mapped() + space.reserved, static_cast<std::int64_t>(space.page_table.capacity()));
    for (std::int64_t index = leaf.begin; index < leaf.end(); ++index) {
        const LogicalPage& page = pages_.at(leaf.elements[static_cast<std::size_t>(index - leaf.begin)]);
        if (!space.unsettled()) NINFER_ASSERT_EQ(page.coverage, needed_coverage(space.frontier, index));
    }
}

void PagedKvStore::add_host_lists(std::vector<BlockList>& lists) const {
    pages_.for_each([&](PageId, const LogicalPage& page) {
        if (page.on_host()) lists.push_back(page.host);
    });
}

std::uint64_t PagedKvStore::fingerprint() const {
    Fingerprint fingerprint;
    device_.add_to(fingerprint);
    pages_.add_to(fingerprint, [](Fingerprint& print, const LogicalPage& page) {
        print.add(page.epoch);
        print.add(page.run.value);
        print.add(page.host.head);
        print.add(page.host.count);
        print.add(page.host_epoch);
        print.add(page.device_page);
        print.add(page.coverage);
        print.add(page.pins);
        print.add(page.copying);
    });
    spaces_.add_to(fingerprint, [](Fingerprint& print, const AddressSpace& space) {
        print.add(space.last.value);
        print.add(space.frontier);
        print.add(space.active);
        print.add(space.reserved);
        print.add(space.tail_source.value);
        for (const std::int32_t page : space.page_table) print.add(page);
    });
    runs_.add_to(fingerprint, [](Fingerprint& print, const PageRuns::Run& run) {
        for (const PageId page : run.elements) print.add(page.value);
        print.add(run.data.readers);
        print.add(run.data.on_device);
        print.add(run.data.on_host);
        print.add(run.data.pins);
    });
    fingerprint.add(last_epoch_);
    return fingerprint.value();
}

std::size_t PagedKvStore::bookkeeping_bytes() const {
    std::size_t bytes =
        device_.bookkeeping_bytes() + runs_.memory_bytes() + pages_.memory_bytes() + spaces_.memory_bytes();
    spaces_.for_each(
        [&](SpaceId, const AddressSpace& space) { bytes += space.page_table.capacity() * sizeof(std::int32_t); });
    return bytes;
}

}  // namespace ninfer
