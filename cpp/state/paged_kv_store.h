#pragma once

// Pages of keys and values, and the address spaces that see them. One writer thread; knows no model and no request.
//
// Every call either succeeds or returns a Refusal and has changed nothing (fingerprint()). Refusals are checked in the
// order in which each call's comment lists them, kStaleHandle always first. Sizes and counts that no caller may pass
// (negative ones) are asserted.
//
// Invariants, all recounted by check_invariants:
// 1. A page is listed by exactly one run; its references are the spaces through that run. It has a replica at least, and
//    a device page or Host block belongs to one page or to one open copy.
// 2. A space's chain has exactly the pages that its frontier needs; an active one may have more, mapped and not yet
//    committed. The coverage of each page is at least what the frontier needs of it, except of an unsettled tail.
// 3. The writer of a page is the active space whose leaf run lists it, and only below full coverage. Such a page is on
//    Device only, and nobody else sees it. All other pages are immutable.
// 4. Pages that an active space sees are on Device, and its page table says where.
// 5. taken + reserved device pages never exceed the total; reserved ones are the sum over the active spaces.
// 6. A run's counts (PageRunData) are those of its pages and spaces.
// Costs: facts about a space, runs of its chain; map and commit, pages touched, without heap allocation; fork and consume,
// one pass over the pages for the new page table, and at most one cut of a run.

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/function_ref.h"
#include "cpp/state/address_space.h"
#include "cpp/state/device_page_pool.h"
#include "cpp/state/tier.h"

namespace ninfer {

struct SpaceFacts {
    std::int64_t frontier = 0;
    bool active = false;
    bool settled = true;
    std::int64_t reserved = 0;
    std::int64_t runs = 0;
    std::int64_t pages = 0;
    std::int64_t pages_on_device = 0;
    std::int64_t pages_on_host = 0;
    std::int64_t pages_exclusive = 0;  // that no other space sees
    std::int64_t pins = 0;

    bool device_ready() const noexcept { return settled && pages_on_device == pages; }
};

// What freeze would do with the pages up to the frontier: shared + frozen_in_place = pages of the frozen space.
struct CaptureShape {
    std::int64_t shared = 0;           // other spaces see them already
    std::int64_t frozen_in_place = 0;  // only this space sees them, the unaligned tail among them
    std::int64_t copies = 0;           // 1 for an unaligned tail: the writer's new page, out of its own reservation
};

struct RunFacts {
    RunId run;
    std::int64_t first_page = 0;  // index in the space
    std::int64_t pages = 0;
    std::int32_t holders = 0;  // spaces that see these pages, active or frozen
    PageRunData counts;
};

// What open copies hold of the store: for check_invariants.
struct PageHoldings {
    std::vector<std::int32_t> device_pages;  // destinations
    std::vector<PageId> pins;                // one entry per pin
    std::vector<PageId> copying;
};

class PagedKvStore {
   public:
    // pages_total page groups of page_bytes at the start of the memory. Both memory and tier outlive the store.
    PagedKvStore(DeviceMemory& memory, std::size_t page_bytes, std::int64_t pages_total, HostTier& host);

    // --- spaces -------------------------------------------------------------------------------------------------------
    // An empty active space. kNoPages.
    Result<SpaceId, Refusal> open(std::int64_t reserved_pages);
    // Maps pages out of the reservation so that [0, tokens_end) has a place. kFrozen, kUnsettled, kOverReservation.
    Result<Nothing, Refusal> map(SpaceId space, std::int64_t tokens_end);
    // Tokens up to `frontier` are written and count. The frontier it has already is a commit of nothing.
    // kFrozen, kUnsettled, kBackwards, kNotMapped.
    Result<Nothing, Refusal> commit(SpaceId space, std::int64_t frontier);
    // A new active space that begins with the first `frontier` tokens of a frozen one: shares the full pages. A partial
    // tail gets a page out of the reservation and leaves the space unsettled until that copy is published (ReplicaCopies).
    // kActive, kBeyondFrontier, kOverReservation (an unaligned frontier and no page for it), kNoPages, kNotOnDevice.
    Result<SpaceId, Refusal> fork(SpaceId frozen, std::int64_t frontier, std::int64_t reserved_pages);
    // Move: a new active space in place of the frozen one, whose handle is stale afterwards. Like a fork at its frontier,
    // but a partial tail that nobody else sees is written in place: its Host replica goes, and no copy is needed.
    // kActive, kOverReservation and kNoPages as fork, kNotOnDevice, kPinned (the tail that would be written).
    Result<SpaceId, Refusal> consume(SpaceId frozen, std::int64_t reserved_pages);
    // A frozen space with the active one's committed tokens. Nothing that is immutable is copied; an unaligned tail stays
    // with the frozen space, and the active one gets a page for it out of its reservation and is unsettled.
    // kFrozen, kUnsettled, kOverReservation.
    Result<SpaceId, Refusal> freeze(SpaceId active);
    // The active space becomes frozen under the same handle; what is not committed goes. kFrozen, kUnsettled.
    Result<Nothing, Refusal> finish(SpaceId active);
    // Another frozen space that sees the first `frontier` tokens of a frozen one; nothing is copied, a partial tail is
    // shared. kActive, kBeyondFrontier.
    Result<SpaceId, Refusal> share(SpaceId frozen, std::int64_t frontier);
    // Ends the space; pages that nobody else sees go. kPinned (pages that would go).
    Result<Nothing, Refusal> release(SpaceId space);

    // --- replicas -----------------------------------------------------------------------------------------------------
    // Takes the replica away. kNoReplica, kLastReplica, kPinned, kActive (Device, and an active space sees the page).
    Result<Nothing, Refusal> drop(PageId page, Tier tier);

    // --- facts --------------------------------------------------------------------------------------------------------
    Result<SpaceFacts, Refusal> facts(SpaceId space) const;
    // kFrozen, kUnsettled.
    Result<CaptureShape, Refusal> capture_shape(SpaceId active) const;
    // Whether every page that the frontier needs has a replica of its epoch with enough coverage, as the pages themselves
    // say; costs pages. False for an unsettled space.
    Result<bool, Refusal> valid(SpaceId space) const;
    // Runs from the last one to the root.
    void for_each_run(SpaceId space, FunctionRef<void(const RunFacts&)> visit) const;
    // Pages in the order of tokens.
    void for_each_page(SpaceId space, FunctionRef<void(PageId, const LogicalPage&)> visit) const;
    void for_each_page_of(RunId run, FunctionRef<void(PageId, const LogicalPage&)> visit) const;
    void for_each_space(FunctionRef<void(SpaceId, const AddressSpace&)> visit) const;

    Result<const LogicalPage*, Refusal> find(PageId page) const { return pages_.find(page); }
    Result<const AddressSpace*, Refusal> find(SpaceId space) const { return spaces_.find(space); }
    // An active space's device pages, for model units; valid until the space next changes. Settled ones only: asserted.
    std::span<const std::int32_t> page_table(SpaceId active) const;
    KvPoolView pool() noexcept { return device_.view(); }
    const DevicePagePool& device() const noexcept { return device_; }
    std::int64_t blocks_per_page() const noexcept { return blocks_per_page_; }
    bool writable(const LogicalPage& page) const;
    std::int32_t references(const LogicalPage& page) const { return runs_.run(page.run).holders; }

    // `copies` names what open copies hold. Whether Host blocks have one owner shows only with all lists together.
    void check_invariants(const PageHoldings& copies) const;
    void add_host_lists(std::vector<BlockList>& lists) const;
    std::uint64_t fingerprint() const;
    std::size_t bookkeeping_bytes() const;

    // --- for ReplicaCopies only: asserted, never refused --------------------------------------------------------------
    DevicePagePool& device_of_copies() noexcept { return device_; }
    PageId tail_of_copy(SpaceId unsettled) const;
    void pin(PageId page);
    void unpin(PageId page);
    void mark_copying(PageId page, bool copying);
    void publish_on_device(PageId page, std::int32_t device_page);
    void publish_on_host(PageId page, BlockList blocks, std::uint64_t epoch);
    // The tail is there: the space counts as any other, and its source is free.
    void settle(SpaceId space);

   private:
    struct Start {     // of an active space
        RunId parent;  // the run that its own leaf follows
        std::int64_t frontier = 0;
        std::int64_t reserved = 0;
        PageId tail_source;  // or none
    };

    Result<const AddressSpace*, Refusal> find_active_settled(SpaceId space) const;
    Result<const AddressSpace*, Refusal> find_frozen(SpaceId space) const;
    Result<Nothing, Refusal> check_growth(std::int64_t frontier, std::int64_t reserved, bool copies_tail) const;
    Result<Nothing, Refusal> check_on_device(RunId last, std::int64_t pages) const;
    bool tail_is_exclusive(const AddressSpace& space) const;

    PageId page_at(RunId last, std::int64_t index) const;
    RunId cut(RunId last, std::int64_t pages);
    void compact(RunId last);
    void recount(RunId run);
    void add_reader(RunId last, std::int32_t change);

    PageId new_page(RunId run);
    void free_page(PageId page);
    void map_page(AddressSpace& space);
    void release_chain(RunId last);
    SpaceId begin_active(const Start& start);
    SpaceId continue_run(AddressSpace source, std::int64_t reserved);
    void begin_writing(PageId tail, std::int64_t coverage);
    void add_page_table(AddressSpace& space);
    void copy_tail(AddressSpace& space, PageId source);
    void remove_uncommitted(AddressSpace& space);
    SpaceId freeze_leaf(SpaceId active_id, std::int64_t pages);

    void check_pages(const PageHoldings& copies) const;
    void check_runs() const;
    void check_spaces() const;
    void check_active(const AddressSpace& space) const;
    void check_pins(const PageHoldings& copies) const;

    HostTier* host_;
    DevicePagePool device_;
    std::int64_t blocks_per_page_;
    PageRuns runs_;
    HandleTable<LogicalPage, PageTag> pages_;
    HandleTable<AddressSpace, SpaceTag> spaces_;
    std::uint64_t last_epoch_ = 0;
};

}  // namespace ninfer
