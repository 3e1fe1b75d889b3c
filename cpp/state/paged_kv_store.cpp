#include "cpp/state/paged_kv_store.h"

#include <algorithm>

#include "cpp/base/assert.h"
#include "cpp/state/page_count.h"

namespace ninfer {

PagedKvStore::PagedKvStore(DeviceMemory& memory, std::size_t page_bytes, std::int64_t pages_total, HostTier& host)
    : host_(&host), device_(memory, page_bytes, pages_total), blocks_per_page_(host.blocks_for(page_bytes)) {
    NINFER_ASSERT_LE(1, blocks_per_page_);
    // Every page has a replica, so there are never more pages than this, and births allocate nothing.
    pages_.reserve(pages_total + host.blocks_total() / blocks_per_page_);
}

Result<SpaceId, Refusal> PagedKvStore::open(std::int64_t reserved_pages) {
    if (const auto fits = check_growth(0, reserved_pages, false); !fits) return fits.error();
    return begin_active({.parent = {}, .frontier = 0, .reserved = reserved_pages, .tail_source = {}});
}

Result<Nothing, Refusal> PagedKvStore::map(SpaceId id, std::int64_t tokens_end) {
    NINFER_ASSERT_LE(0, tokens_end);
    const auto found = find_active_settled(id);
    if (!found) return found.error();
    AddressSpace& space = spaces_.at(id);
    const std::int64_t limit = (space.pages_mapped() + space.reserved) * kPageTokens;
    if (tokens_end > limit) return Refusal{RefusalKind::kOverReservation, tokens_end, limit};
    while (space.pages_mapped() < pages_of(tokens_end)) map_page(space);
    return Nothing{};
}

Result<Nothing, Refusal> PagedKvStore::commit(SpaceId id, std::int64_t frontier) {
    const auto found = find_active_settled(id);
    if (!found) return found.error();
    AddressSpace& space = spaces_.at(id);
    if (frontier < space.frontier) return Refusal{RefusalKind::kBackwards, frontier, space.frontier};
    const std::int64_t mapped = space.pages_mapped() * kPageTokens;
    if (frontier > mapped) return Refusal{RefusalKind::kNotMapped, frontier, mapped};
    if (frontier == space.frontier) return Nothing{};
    const PageRuns::Run& leaf = runs_.run(space.last);
    for (std::int64_t index = space.frontier / kPageTokens; index < pages_of(frontier); ++index) {
        LogicalPage& page = pages_.at(leaf.elements[static_cast<std::size_t>(index - leaf.begin)]);
        page.coverage = needed_coverage(frontier, index);
        page.epoch = ++last_epoch_;
    }
    space.frontier = frontier;
    return Nothing{};
}

Result<Nothing, Refusal> PagedKvStore::release(SpaceId id) {
    const auto found = spaces_.find(id);
    if (!found) return found.error();
    std::int64_t pins = 0;
    runs_.for_each_of(found.value()->last, [&](RunId, const PageRuns::Run& run) {
        if (run.holders == 1) pins += run.data.pins;
    });
    if (pins > 0) return Refusal{RefusalKind::kPinned, 0, pins};
    const AddressSpace space = spaces_.erase(id);
    if (space.unsettled()) unpin(space.tail_source);
    device_.unreserve(space.reserved);
    if (space.active) add_reader(space.last, -1);
    release_chain(space.last);
    return Nothing{};
}

Result<Nothing, Refusal> PagedKvStore::drop(PageId id, Tier tier) {
    const auto found = pages_.find(id);
    if (!found) return found.error();
    LogicalPage& page = *found.value();
    PageRunData& counts = runs_.run(page.run).data;
    if (tier == Tier::kDevice ? !page.on_device() : !page.on_host())
        return Refusal{RefusalKind::kNoReplica, static_cast<std::int64_t>(tier), -1};
    if (!page.on_device() || !page.on_host()) return Refusal{RefusalKind::kLastReplica, 1, 0};
    if (page.pins > 0) return Refusal{RefusalKind::kPinned, 0, page.pins};
    if (tier == Tier::kHost) {
        host_->release(page.host);
        --counts.on_host;
        return Nothing{};
    }
    if (counts.readers > 0) return Refusal{RefusalKind::kActive, 0, counts.readers};
    device_.give_back(page.device_page);
    page.device_page = LogicalPage::kNotOnDevice;
    --counts.on_device;
    return Nothing{};
}

Result<const AddressSpace*, Refusal> PagedKvStore::find_active_settled(SpaceId id) const {
    const auto found = spaces_.find(id);
    if (!found) return found;
    if (!found.value()->active) return Refusal{RefusalKind::kFrozen, 1, 0};
    if (found.value()->unsettled()) return Refusal{RefusalKind::kUnsettled, 0, 1};
    return found;
}

Result<const AddressSpace*, Refusal> PagedKvStore::find_frozen(SpaceId id) const {
    const auto found = spaces_.find(id);
    if (found && found.value()->active) return Refusal{RefusalKind::kActive, 0, 1};
    return found;
}

PageId PagedKvStore::new_page(RunId run_id) {
    const PageId id =
        pages_.insert({.epoch = ++last_epoch_, .run = run_id, .host = {}, .device_page = device_.take_reserved()});
    PageRuns::Run& run = runs_.run(run_id);
    run.elements.push_back(id);
    ++run.data.on_device;
    return id;
}

void PagedKvStore::free_page(PageId id) {
    LogicalPage page = pages_.erase(id);
    NINFER_ASSERT_EQ(page.pins, 0);
    PageRunData& counts = runs_.run(page.run).data;
    if (page.on_device()) {
        device_.give_back(page.device_page);
        --counts.on_device;
    }
    if (page.on_host()) {
        host_->release(page.host);
        --counts.on_host;
    }
}

void PagedKvStore::map_page(AddressSpace& space) {
    NINFER_ASSERT_LE(1, space.reserved);
    --space.reserved;
    space.page_table.push_back(pages_.at(new_page(space.last)).device_page);
}

void PagedKvStore::release_chain(RunId last) {
    const RunId left = runs_.detach(last, [&](const PageRuns::Run& run) {
        for (const PageId page : run.elements) free_page(page);
    });
    if (!left.none()) compact(runs_.end_of_common(left));
}

void PagedKvStore::pin(PageId id) {
    LogicalPage& page = pages_.at(id);
    ++page.pins;
    ++runs_.run(page.run).data.pins;
}

void PagedKvStore::unpin(PageId id) {
    LogicalPage& page = pages_.at(id);
    NINFER_ASSERT_LE(1, page.pins);
    --page.pins;
    --runs_.run(page.run).data.pins;
}

void PagedKvStore::mark_copying(PageId id, bool copying) {
    LogicalPage& page = pages_.at(id);
    NINFER_ASSERT_EQ(page.copying, !copying);
    page.copying = copying;
}

PageId PagedKvStore::tail_of_copy(SpaceId id) const {
    const AddressSpace& space = spaces_.at(id);
    NINFER_ASSERT(space.unsettled(), "a settled space waits for no tail");
    return page_at(space.last, space.frontier / kPageTokens);
}

void PagedKvStore::publish_on_device(PageId id, std::int32_t device_page) {
    LogicalPage& page = pages_.at(id);
    NINFER_ASSERT(!page.on_device(), "a page gets a second Device replica");
    page.device_page = device_page;
    ++runs_.run(page.run).data.on_device;
}

void PagedKvStore::publish_on_host(PageId id, BlockList blocks, std::uint64_t epoch) {
    LogicalPage& page = pages_.at(id);
    NINFER_ASSERT(!page.on_host(), "a page gets a second Host replica");
    NINFER_ASSERT_EQ(blocks.count, blocks_per_page_);
    page.host = blocks;
    page.host_epoch = epoch;
    ++runs_.run(page.run).data.on_host;
}

void PagedKvStore::settle(SpaceId id) {
    AddressSpace& space = spaces_.at(id);
    LogicalPage& tail = pages_.at(tail_of_copy(id));
    tail.coverage = needed_coverage(space.frontier, space.frontier / kPageTokens);
    tail.epoch = ++last_epoch_;
    unpin(space.tail_source);
    space.tail_source = PageId{};
}

}  // namespace ninfer
