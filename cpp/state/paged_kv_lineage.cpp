// How address spaces come out of each other: fork, consume, freeze, finish, share.

#include <algorithm>

#include "cpp/base/assert.h"
#include "cpp/state/page_count.h"
#include "cpp/state/paged_kv_store.h"

namespace ninfer {

Result<Nothing, Refusal> PagedKvStore::check_growth(std::int64_t frontier, std::int64_t reserved,
                                                    bool copies_tail) const {
    NINFER_ASSERT_LE(0, reserved);
    const std::int64_t full = frontier / kPageTokens;
    if (copies_tail && reserved < 1) return Refusal{RefusalKind::kOverReservation, frontier, full * kPageTokens};
    if (reserved > device_.pages_unpromised())
        return Refusal{RefusalKind::kNoPages, reserved, device_.pages_unpromised()};
    return Nothing{};
}

Result<Nothing, Refusal> PagedKvStore::check_on_device(RunId last, std::int64_t pages) const {
    std::int64_t found = 0;
    runs_.for_each_of(last, [&](RunId, const PageRuns::Run& run) {
        const std::int64_t needed = std::clamp<std::int64_t>(pages - run.begin, 0, run.size());
        if (needed == run.size() || run.data.on_device == run.size()) {
            found += std::min<std::int64_t>(run.data.on_device, needed);
            return;
        }
        for (std::int64_t i = 0; i < needed; ++i)
            if (pages_.at(run.elements[static_cast<std::size_t>(i)]).on_device()) ++found;
    });
    if (found < pages) return Refusal{RefusalKind::kNotOnDevice, pages, found};
    return Nothing{};
}

bool PagedKvStore::tail_is_exclusive(const AddressSpace& space) const {
    return !space.last.none() && runs_.run(space.last).holders == 1;
}

Result<SpaceId, Refusal> PagedKvStore::fork(SpaceId id, std::int64_t frontier, std::int64_t reserved_pages) {
    NINFER_ASSERT_LE(0, frontier);
    const auto found = find_frozen(id);
    if (!found) return found.error();
    const AddressSpace& source = *found.value();
    if (frontier > source.frontier) return Refusal{RefusalKind::kBeyondFrontier, frontier, source.frontier};
    const bool copies = !is_aligned(frontier);
    if (const auto fits = check_growth(frontier, reserved_pages, copies); !fits) return fits.error();
    if (const auto there = check_on_device(source.last, pages_of(frontier)); !there) return there.error();
    const std::int64_t full = frontier / kPageTokens;
    const PageId tail = copies ? page_at(source.last, full) : PageId{};
    const RunId parent = cut(source.last, full);
    return begin_active({parent, frontier, reserved_pages, tail});
}

Result<SpaceId, Refusal> PagedKvStore::consume(SpaceId id, std::int64_t reserved_pages) {
    const auto found = find_frozen(id);
    if (!found) return found.error();
    const std::int64_t frontier = found.value()->frontier;
    const RunId last = found.value()->last;
    const bool exclusive = tail_is_exclusive(*found.value());
    const bool unaligned = !is_aligned(frontier);
    if (const auto fits = check_growth(frontier, reserved_pages, unaligned && !exclusive); !fits) return fits.error();
    if (const auto there = check_on_device(last, pages_of(frontier)); !there) return there.error();
    const std::int64_t full = frontier / kPageTokens;
    const PageId tail = unaligned ? page_at(last, full) : PageId{};
    if (unaligned && exclusive && pages_.at(tail).pins > 0)
        return Refusal{RefusalKind::kPinned, 0, pages_.at(tail).pins};

    AddressSpace source = spaces_.erase(id);
    compact(last);
    if (exclusive) return continue_run(std::move(source), reserved_pages);
    const SpaceId made = begin_active({cut(last, full), frontier, reserved_pages, tail});
    release_chain(last);
    return made;
}

SpaceId PagedKvStore::begin_active(const Start& start) {
    device_.reserve(start.reserved);
    AddressSpace space;
    space.active = true;
    space.frontier = start.frontier;
    space.reserved = start.reserved;
    space.last = runs_.append_run(start.parent);
    runs_.run(space.last).elements.reserve(static_cast<std::size_t>(start.reserved));
    runs_.attach(space.last);
    add_reader(space.last, 1);
    add_page_table(space);
    if (start.tail_source != PageId{}) copy_tail(space, start.tail_source);
    return spaces_.insert(std::move(space));
}

// The only space through its last run goes on in it.
SpaceId PagedKvStore::continue_run(AddressSpace space, std::int64_t reserved) {
    device_.reserve(reserved);
    space.active = true;
    space.reserved = reserved;
    PageRuns::Run& run = runs_.run(space.last);
    run.elements.reserve(run.elements.size() + static_cast<std::size_t>(reserved));
    add_reader(space.last, 1);
    add_page_table(space);
    if (!is_aligned(space.frontier))
        begin_writing(run.elements.back(), needed_coverage(space.frontier, space.frontier / kPageTokens));
    return spaces_.insert(std::move(space));
}

void PagedKvStore::begin_writing(PageId tail, std::int64_t coverage) {
    LogicalPage& page = pages_.at(tail);
    NINFER_ASSERT_EQ(page.pins, 0);
    if (page.on_host()) {
        host_->release(page.host);
        --runs_.run(page.run).data.on_host;
    }
    if (page.coverage == coverage) return;
    // The space saw less of the page than others did who are gone.
    NINFER_ASSERT_LT(coverage, page.coverage);
    page.coverage = static_cast<std::int32_t>(coverage);
    page.epoch = ++last_epoch_;
}

void PagedKvStore::add_page_table(AddressSpace& space) {
    const std::int64_t pages = runs_.length(space.last);
    space.page_table.reserve(static_cast<std::size_t>(pages + space.reserved));
    space.page_table.resize(static_cast<std::size_t>(pages));
    runs_.for_each_of(space.last, [&](RunId, const PageRuns::Run& run) {
        std::int32_t* entry = space.page_table.data() + run.begin;
        for (const PageId page : run.elements) *entry++ = pages_.at(page).device_page;
    });
}

void PagedKvStore::copy_tail(AddressSpace& space, PageId source) {
    map_page(space);
    space.tail_source = source;
    pin(source);
}

Result<CaptureShape, Refusal> PagedKvStore::capture_shape(SpaceId id) const {
    const auto found = find_active_settled(id);
    if (!found) return found.error();
    const AddressSpace& space = *found.value();
    const std::int64_t pages = pages_of(space.frontier);
    CaptureShape shape{.shared = 0, .frozen_in_place = 0, .copies = is_aligned(space.frontier) ? 0 : 1};
    runs_.for_each_of(space.last, [&](RunId, const PageRuns::Run& run) {
        const std::int64_t captured = std::clamp<std::int64_t>(pages - run.begin, 0, run.size());
        (run.holders > 1 ? shape.shared : shape.frozen_in_place) += captured;
    });
    return shape;
}

Result<SpaceId, Refusal> PagedKvStore::freeze(SpaceId id) {
    const auto shape = capture_shape(id);
    if (!shape) return shape.error();
    const AddressSpace& space = spaces_.at(id);
    if (shape.value().copies > space.reserved) {
        const std::int64_t mapped = space.pages_mapped();
        return Refusal{RefusalKind::kOverReservation, (mapped + 1) * kPageTokens, mapped * kPageTokens};
    }
    const std::int64_t pages = pages_of(space.frontier);
    const PageRuns::Run& leaf = runs_.run(space.last);
    if (leaf.begin < pages) return freeze_leaf(id, pages);
    // Nothing was committed in the leaf: the frozen space ends where the leaf begins.
    AddressSpace frozen;
    frozen.last = leaf.parent;
    frozen.frontier = space.frontier;
    runs_.attach(frozen.last);
    return spaces_.insert(std::move(frozen));
}

// The leaf stays with the frozen space as far as it is committed; the active one goes on in a new leaf.
SpaceId PagedKvStore::freeze_leaf(SpaceId id, std::int64_t pages) {
    AddressSpace& space = spaces_.at(id);
    const RunId frozen_last = space.last;
    const bool unaligned = !is_aligned(space.frontier);
    auto& elements = runs_.run(frozen_last).elements;
    const auto committed_end = elements.begin() + (pages - runs_.run(frozen_last).begin);
    const std::vector<PageId> rest(committed_end, elements.end());
    const PageId tail = *(committed_end - 1);
    elements.erase(committed_end, elements.end());
    elements.shrink_to_fit();
    recount(frozen_last);

    // The active chain leaves out the partial tail, which the frozen one keeps as a run of its own.
    const RunId parent = unaligned ? cut(frozen_last, pages - 1) : frozen_last;
    if (unaligned) --runs_.run(frozen_last).data.readers;
    space.last = runs_.append_run(parent);
    runs_.run(space.last).elements.reserve(rest.size() + static_cast<std::size_t>(space.reserved));
    runs_.attach(space.last);
    ++runs_.run(space.last).data.readers;
    space.page_table.resize(static_cast<std::size_t>(unaligned ? pages - 1 : pages));
    if (unaligned) copy_tail(space, tail);
    for (const PageId page : rest) {
        runs_.run(space.last).elements.push_back(page);
        space.page_table.push_back(pages_.at(page).device_page);
    }
    recount(space.last);

    AddressSpace frozen;
    frozen.last = frozen_last;
    frozen.frontier = space.frontier;
    return spaces_.insert(std::move(frozen));
}

Result<Nothing, Refusal> PagedKvStore::finish(SpaceId id) {
    const auto found = find_active_settled(id);
    if (!found) return found.error();
    AddressSpace& space = spaces_.at(id);
    remove_uncommitted(space);
    device_.unreserve(space.reserved);
    add_reader(space.last, -1);
    AddressSpace frozen;
    frozen.frontier = space.frontier;
    frozen.last = space.last;
    if (PageRuns::Run& leaf = runs_.run(space.last); leaf.elements.empty()) {
        frozen.last = leaf.parent;
        runs_.attach(frozen.last);
        release_chain(space.last);
    } else {
        leaf.elements.shrink_to_fit();
    }
    space = std::move(frozen);
    compact(space.last);
    return Nothing{};
}

void PagedKvStore::remove_uncommitted(AddressSpace& space) {
    PageRuns::Run& leaf = runs_.run(space.last);
    while (leaf.end() > pages_of(space.frontier)) {
        free_page(leaf.elements.back());
        leaf.elements.pop_back();
    }
}

Result<SpaceId, Refusal> PagedKvStore::share(SpaceId id, std::int64_t frontier) {
    NINFER_ASSERT_LE(0, frontier);
    const auto found = find_frozen(id);
    if (!found) return found.error();
    if (frontier > found.value()->frontier)
        return Refusal{RefusalKind::kBeyondFrontier, frontier, found.value()->frontier};
    AddressSpace frozen;
    frozen.frontier = frontier;
    frozen.last = cut(found.value()->last, pages_of(frontier));
    runs_.attach(frozen.last);
    return spaces_.insert(std::move(frozen));
}

PageId PagedKvStore::page_at(RunId last, std::int64_t index) const {
    RunId id = last;
    while (runs_.run(id).begin > index) id = runs_.run(id).parent;
    const PageRuns::Run& run = runs_.run(id);
    NINFER_ASSERT_LT(index, run.end());
    return run.elements[static_cast<std::size_t>(index - run.begin)];
}

RunId PagedKvStore::cut(RunId last, std::int64_t pages) {
    bool was_cut = false;
    const RunId first = runs_.cut(last, pages, [&](PageRuns::Run&, PageRuns::Run&) { was_cut = true; });
    if (!was_cut) return first;
    const PageRunData whole = runs_.run(first).data;
    recount(first);
    const PageRunData part = runs_.run(first).data;
    // The second part is the run that comes after the first one in this chain.
    RunId second = last;
    while (runs_.run(second).parent != first) second = runs_.run(second).parent;
    runs_.run(second).data = {whole.readers, whole.on_device - part.on_device, whole.on_host - part.on_host,
                              whole.pins - part.pins};
    return first;
}

// Runs that were parted for somebody who is gone become one again, so that chains stay short.
void PagedKvStore::compact(RunId last) {
    runs_.compact(last, [](PageRuns::Run& first, PageRuns::Run& second) {
        // An active space goes on in its own leaf, which has the room that was promised to it.
        if (second.children == 0 && second.data.readers > 0) return false;
        first.elements.reserve(first.elements.size() + second.elements.size());
        return true;
    });
    for (RunId id = last; !id.none(); id = runs_.run(id).parent) {
        const PageRuns::Run& run = runs_.run(id);
        if (!run.elements.empty() && pages_.at(run.elements.front()).run != id) recount(id);
    }
}

// Makes the pages of a run know it, and the run's counts true.
void PagedKvStore::recount(RunId id) {
    PageRuns::Run& run = runs_.run(id);
    PageRunData counts{.readers = run.data.readers};
    for (const PageId listed : run.elements) {
        LogicalPage& page = pages_.at(listed);
        page.run = id;
        counts.on_device += page.on_device() ? 1 : 0;
        counts.on_host += page.on_host() ? 1 : 0;
        counts.pins += page.pins;
    }
    run.data = counts;
}

void PagedKvStore::add_reader(RunId last, std::int32_t change) {
    runs_.for_each_of(last, [&](RunId, PageRuns::Run& run) { run.data.readers += change; });
}

}  // namespace ninfer
