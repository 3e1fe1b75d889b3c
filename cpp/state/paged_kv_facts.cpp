// What can be asked about pages and spaces without changing them.

#include <algorithm>

#include "cpp/base/assert.h"
#include "cpp/state/page_count.h"
#include "cpp/state/paged_kv_store.h"

namespace ninfer {

Result<SpaceFacts, Refusal> PagedKvStore::facts(SpaceId id) const {
    const auto found = spaces_.find(id);
    if (!found) return found.error();
    const AddressSpace& space = *found.value();
    SpaceFacts facts;
    facts.frontier = space.frontier;
    facts.active = space.active;
    facts.settled = !space.unsettled();
    facts.reserved = space.reserved;
    facts.pages = runs_.length(space.last);
    runs_.for_each_of(space.last, [&](RunId, const PageRuns::Run& run) {
        ++facts.runs;
        facts.pages_on_device += run.data.on_device;
        facts.pages_on_host += run.data.on_host;
        facts.pages_exclusive += run.holders == 1 ? run.size() : 0;
        facts.pins += run.data.pins;
    });
    return facts;
}

Result<bool, Refusal> PagedKvStore::valid(SpaceId id) const {
    const auto found = spaces_.find(id);
    if (!found) return found.error();
    const AddressSpace& space = *found.value();
    const std::int64_t pages = pages_of(space.frontier);
    bool covered = !space.unsettled() && runs_.length(space.last) >= pages;
    runs_.for_each_of(space.last, [&](RunId, const PageRuns::Run& run) {
        for (std::int64_t index = run.begin; index < std::min(run.end(), pages); ++index) {
            const LogicalPage& page = pages_.at(run.elements[static_cast<std::size_t>(index - run.begin)]);
            covered = covered && page.has_content() && page.coverage >= needed_coverage(space.frontier, index);
        }
    });
    return covered;
}

void PagedKvStore::for_each_run(SpaceId space, FunctionRef<void(const RunFacts&)> visit) const {
    runs_.for_each_of(spaces_.at(space).last, [&](RunId id, const PageRuns::Run& run) {
        visit({id, run.begin, run.size(), run.holders, run.data});
    });
}

void PagedKvStore::for_each_page(SpaceId space, FunctionRef<void(PageId, const LogicalPage&)> visit) const {
    std::vector<RunId> chain;
    runs_.for_each_of(spaces_.at(space).last, [&](RunId id, const PageRuns::Run&) { chain.push_back(id); });
    for (auto run = chain.rbegin(); run != chain.rend(); ++run) for_each_page_of(*run, visit);
}

void PagedKvStore::for_each_page_of(RunId run, FunctionRef<void(PageId, const LogicalPage&)> visit) const {
    for (const PageId page : runs_.run(run).elements) visit(page, pages_.at(page));
}

void PagedKvStore::for_each_space(FunctionRef<void(SpaceId, const AddressSpace&)> visit) const {
    spaces_.for_each(visit);
}

std::span<const std::int32_t> PagedKvStore::page_table(SpaceId id) const {
    const AddressSpace& space = spaces_.at(id);
    NINFER_ASSERT(space.active, "a frozen space has no page table");
    NINFER_ASSERT(!space.unsettled(), "the tail of this space is not there yet");
    return space.page_table;
}

// Below full coverage a page that an active space sees is its own: what it shares is full.
bool PagedKvStore::writable(const LogicalPage& page) const {
    return page.coverage < kPageTokens && runs_.run(page.run).data.readers > 0;
}

}  // namespace ninfer
