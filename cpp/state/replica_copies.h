#pragma once

// Copies between the tiers and within the device, one page or image each: the only way bytes move in the stores.
//
// Life of a copy:
// 1. started: its destination is allocated and counts as used, its source is pinned, epoch and coverage are noted;
// 2. waiting: the engine has enough to do; started first, handed over first;
// 3. in flight: the engine moves bytes during polls; nothing else shows; cancel lets go of the handle and asks the
//    engine to stop; the copy drains: destination and pins stay until the engine has ended it, and the next poll (one
//    that waits is never handed over, and drains until then, too);
// 4. done: publish verifies epoch and coverage, makes the destination a replica (a snapshot: a new frozen image, a tail or
//    a restored image: its space or image is settled), and the pins go; or failed, or outdated: publish refuses, and cancel
//    gives everything back. The source is untouched whatever happens.
// A handle ends by publish or by cancel, exactly once. Nothing is half published.
// Starting many copies at once costs little while rows wait: the engine gets what the next poll may move, and the rest as
// polls go on.
//
// Every call either succeeds or returns a Refusal and has changed nothing. Refusals are checked in the order in which each
// call's comment lists them, kStaleHandle always first.

#include <cstdint>
#include <deque>
#include <vector>

#include "cpp/memory/copy_engine.h"
#include "cpp/state/paged_kv_store.h"
#include "cpp/state/state_image_store.h"
#include "cpp/state/used_vector.h"

namespace ninfer {

enum class CopyKind : std::uint8_t {
    kPageToHost,
    kPageToDevice,
    kTail,  // of an unsettled space, from its tail_source to its last page
    kImageToHost,
    kImageToDevice,  // as a checkpoint
    kSnapshot,       // of an active image, to a new frozen one on Host
    kRestore,        // of an unsettled active image, from its source's Host replica
};

struct Copy {
    CopyKind kind = CopyKind::kPageToHost;
    CopyTicket ticket;          // none while it waits
    SpaceId space;              // kTail
    PageId page;                // whose bytes are copied: of pages and tails
    PageId tail;                // kTail: the page that gets them
    ImageId image;              // whose bytes are copied: of images
    ImageId restored;           // kRestore: the image that gets them
    std::uint64_t epoch = 0;    // of what is copied, at the start
    std::int32_t coverage = 0;  // the same, of a page
    std::int32_t device = -1;   // destination page of kPageToDevice, or slot of kImageToDevice
    BlockList host;             // destination of kPageToHost, kImageToHost, kSnapshot
    std::size_t bytes = 0;
};

struct CopyTag {};
using CopyId = Handle<CopyTag>;

class ReplicaCopies {
   public:
    // images may be nullptr: a model without recurrent layers. All outlive this. Memory that the engine may still move
    // must outlive the engine. Between polls the engine is given copies of at most window_bytes, and one at least.
    ReplicaCopies(PagedKvStore& pages, StateImageStore* images, HostTier& host, CopyEngine& engine,
                  std::size_t window_bytes = CopyEngine::kDecodingBudgetBytes);
    ReplicaCopies(const ReplicaCopies&) = delete;
    ReplicaCopies& operator=(const ReplicaCopies&) = delete;

    // kAlreadyThere, kCopyInFlight (one of this page is open, its settling included), kActive (its writer may change it),
    // kNoPages or kNoHostBlocks.
    Result<CopyId, Refusal> start_page(PageId page, Tier destination);
    // kAlreadyThere (the space is settled), kCopyInFlight.
    Result<CopyId, Refusal> start_tail(SpaceId unsettled);
    // kActive, kAlreadyThere, kCopyInFlight, kNoImageSlots or kNoHostBlocks.
    Result<CopyId, Refusal> start_image(ImageId frozen, Tier destination);
    // The image stays in use meanwhile: a commit makes the copy outdated. kFrozen, kUnsettled (unsettled or borrowing),
    // kCopyInFlight, kNoHostBlocks.
    Result<CopyId, Refusal> start_snapshot(ImageId active);
    // kAlreadyThere (the image is settled), kCopyInFlight.
    Result<CopyId, Refusal> start_restore(ImageId unsettled);

    // Hands copies over until max_bytes are in flight besides the oldest one, lets the engine move at most max_bytes, and
    // gives back what drained copies held; whether there were any.
    bool poll(std::size_t max_bytes);
    Result<CopyStatus, Refusal> status(CopyId copy) const;
    // Returns the new image of a snapshot, else none. kCopyInFlight, kCopyFailed, kOutdatedCopy.
    Result<ImageId, Refusal> publish(CopyId copy);
    Result<Nothing, Refusal> cancel(CopyId copy);

    std::int64_t open_copies() const noexcept { return open_.size(); }
    std::int64_t draining_copies() const noexcept { return std::ssize(draining_); }
    std::int64_t waiting_copies() const noexcept { return waiting_count_; }
    Result<const Copy*, Refusal> find(CopyId copy) const { return open_.find(copy); }
    UsedVector used() const;
    CapacityVector capacity() const;

    // All stores together, and that every pin, destination and mark of theirs has its copy.
    void check_invariants() const;
    // Of the open copies alone, and of them together with all stores.
    std::uint64_t fingerprint() const;
    std::uint64_t fingerprint_of_all() const;
    std::size_t bookkeeping_bytes() const;

   private:
    Result<Nothing, Refusal> check_page(const LogicalPage& page, Tier destination) const;
    Result<Nothing, Refusal> take_destination(Copy& copy);
    CopyId begin(Copy copy);
    void hand_over(CopyId copy);
    void hand_over_waiting(std::size_t max_bytes);
    CopyStatus status_of(const Copy& copy) const;
    void append_segments(const Copy& copy);
    // Pins and marks what the copy uses, or takes that back.
    void hold(const Copy& copy, bool held);
    std::uint64_t epoch_now(const Copy& copy) const;
    ImageId make_replica(Copy& copy);
    void end_draining(Copy& copy);

    void add_holdings(const Copy& copy, PageHoldings& pages, ImageHoldings& images,
                      std::vector<BlockList>& lists) const;

    PagedKvStore* pages_;
    StateImageStore* images_;
    HostTier* host_;
    CopyEngine* engine_;
    std::size_t window_bytes_;
    HandleTable<Copy, CopyTag> open_;
    std::deque<CopyId> waiting_;      // in the order of their starts; those that were cancelled are still listed
    std::int64_t waiting_count_ = 0;  // of those that were not
    std::vector<CopyId> in_flight_;   // handed over, and not known to have ended; in that order
    std::size_t in_flight_bytes_ = 0;
    std::vector<Copy> draining_;
    std::vector<CopySegment> segments_;  // scratch of hand_over
};

}  // namespace ninfer
