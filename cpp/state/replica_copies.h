#pragma once

// Copies between the tiers and within the device, one page or image each: the only way bytes move in the stores.
//
// Life of a copy:
// 1. started: its destination is allocated and counts as used, its source is pinned, epoch and coverage are noted;
// 2. in flight: the engine moves bytes during polls; nothing else shows; cancel lets go of the handle and asks the
//    engine to stop; the copy drains: destination and pins stay until the engine has ended it, and the next poll;
// 3. done: publish verifies epoch and coverage, makes the destination a replica (a snapshot: a new frozen image, a tail or
//    a restored image: its space or image is settled), and the pins go; or failed, or outdated: publish refuses, and cancel
//    gives everything back. The source is untouched whatever happens.
// A handle ends by publish or by cancel, exactly once. Nothing is half published.
//
// Every call either succeeds or returns a Refusal and has changed nothing. Refusals are checked in the order in which each
// call's comment lists them, kStaleHandle always first.

#include <cstdint>
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
    CopyTicket ticket;
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
    // images may be nullptr: a model without recurrent layers. All outlive this. Memory that the
    // engine may still move must outlive the engine.
    ReplicaCopies(PagedKvStore& pages, StateImageStore* images, HostTier& host, CopyEngine& engine);
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

    // Lets the engine move at most max_bytes, and gives back what drained copies held; whether there were any.
    bool poll(std::size_t max_bytes);
    Result<CopyStatus, Refusal> status(CopyId copy) const;
    // Returns the new image of a snapshot, else none. kCopyInFlight, kCopyFailed, kOutdatedCopy.
    Result<ImageId, Refusal> publish(CopyId copy);
    Result<Nothing, Refusal> cancel(CopyId copy);

    std::int64_t open_copies() const noexcept { return open_.size(); }
    std::int64_t draining_copies() const noexcept { return std::ssize(draining_); }
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
    CopyId submit(Copy copy);
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
    HandleTable<Copy, CopyTag> open_;
    std::vector<Copy> draining_;
    std::vector<CopySegment> segments_;  // scratch of submit
};

}  // namespace ninfer
