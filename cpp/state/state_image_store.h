#pragma once

// State images: everything besides keys and values that a sequence needs to go on at a frontier, as one piece of bytes.
// One pool of slots on the device: `active_slots` for sequences and `checkpoint_slots` for frozen images. Which slot serves
// which of the two changes all the time; only the two counts are limited, so a slot changes its use without moving a byte.
//
// Life of an image: 1. an active one is opened as zeros, forked from a frozen one (which it reads until its first commit:
// a borrowed read), consumed (Move: it is the frozen one), or restored from a Host replica (unsettled until that copy is
// published); 2. units read read() and write write(), commits give it a new epoch; 3. freeze makes a frozen image out of
// its bytes and goes on in another slot, borrowing; finish freezes it in place; a snapshot makes a frozen image on Host;
// 4. a frozen one never changes; copies and drops move its replicas, never the last one away; 5. gone with its last
// reference.
//
// Every call either succeeds or returns a Refusal and has changed nothing. Refusals are checked in the order in which each
// call's comment lists them, kStaleHandle always first.
//
// Invariants, all recounted by check_invariants: a frozen image has a replica at least, an active one exactly its slot;
// a slot is free or belongs to one image or to one open copy; slots of active images (and of nothing else) <=
// active_slots; slots of frozen images and of copies to the device <= checkpoint_slots; `source` of an active image is
// a frozen one that it pins; pins are those plus the ends of open copies; an active image has one reference.

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/function_ref.h"
#include "cpp/memory/device_memory.h"
#include "cpp/state/handle.h"
#include "cpp/state/host_tier.h"
#include "cpp/state/tier.h"

namespace ninfer {

struct ImageTag {};
using ImageId = Handle<ImageTag>;

struct StateImage {
    static constexpr std::int32_t kNotOnDevice = -1;

    std::uint64_t epoch = 0;  // names the content: equal epochs, equal bytes
    ImageId source;           // of an active one: whose bytes it reads (borrowed) or waits for (unsettled)
    BlockList host;
    std::uint64_t host_epoch = 0;  // of the content that was copied to Host
    std::int32_t slot = kNotOnDevice;
    std::int32_t references = 1;
    std::int32_t pins = 0;
    bool active = false;
    bool unsettled = false;  // an active one whose bytes are to be copied from its source's Host replica
    bool copying = false;    // a copy from or to it is open that is not just a read by somebody else's restore

    bool on_device() const noexcept { return slot != kNotOnDevice; }
    bool on_host() const noexcept { return !host.empty(); }
    // As LogicalPage has it.
    bool has_content() const noexcept { return on_device() || (on_host() && host_epoch == epoch); }
    bool borrows() const noexcept { return source != ImageId{} && !unsettled; }
};

struct ImageStoreSize {
    std::size_t image_bytes = 0;  // more than 0: a model without recurrent layers has no images
    std::int64_t active_slots = 0;
    std::int64_t checkpoint_slots = 0;
};

// What open copies hold of the store: for check_invariants.
struct ImageHoldings {
    std::vector<std::int32_t> slots;  // destinations, counted as checkpoints'
    std::vector<ImageId> pins;        // one entry per pin
    std::vector<ImageId> copying;
};

class StateImageStore {
   public:
    // Slots at the start of the memory, each image_bytes. Both memory and tier outlive the store.
    StateImageStore(DeviceMemory& memory, const ImageStoreSize& size, HostTier& host);

    // An active image of zeros. kNoImageSlots.
    Result<ImageId, Refusal> open();
    // An active image that reads the frozen one until its first commit. kActive, kNotOnDevice, kNoImageSlots.
    Result<ImageId, Refusal> fork(ImageId frozen);
    // Move: the frozen image becomes active and its handle stale; its Host replica goes.
    // kActive, kNotOnDevice, kShared, kPinned, kNoImageSlots.
    Result<ImageId, Refusal> consume(ImageId frozen);
    // An active image that waits for a copy of the frozen one's Host replica (ReplicaCopies::start_restore).
    // kActive, kNoReplica, kNoImageSlots.
    Result<ImageId, Refusal> restore(ImageId frozen);
    // The unit has written write(): new content, and a borrowed read ends. kFrozen, kUnsettled.
    Result<Nothing, Refusal> commit(ImageId active);
    // A frozen image with the active one's bytes, which goes on in another slot and borrows them. kFrozen, kUnsettled (it
    // waits for its bytes, or borrows already: retain that source instead), kPinned, kNoImageSlots (of checkpoints).
    Result<ImageId, Refusal> freeze(ImageId active);
    // The active image becomes frozen under the same handle. kFrozen, kUnsettled as freeze, kNoImageSlots.
    Result<Nothing, Refusal> finish(ImageId active);
    // One reference more. kActive.
    Result<Nothing, Refusal> retain(ImageId frozen);
    // One reference less; the last one ends the image. kPinned (if it would go).
    Result<Nothing, Refusal> release(ImageId image);
    // Takes the replica away. kActive, kNoReplica, kLastReplica, kPinned.
    Result<Nothing, Refusal> drop(ImageId frozen, Tier tier);

    // Device addresses for a model unit; equal (in place) unless the image borrows. Active and settled: asserted.
    const std::byte* read(ImageId active);
    std::byte* write(ImageId active);

    Result<const StateImage*, Refusal> find(ImageId image) const { return images_.find(image); }
    void for_each(FunctionRef<void(ImageId, const StateImage&)> visit) const;
    const ImageStoreSize& size() const noexcept { return size_; }
    std::byte* slot_data(std::int32_t slot) noexcept;
    std::int64_t active_slots_used() const noexcept { return active_slots_used_; }
    std::int64_t checkpoint_slots_used() const noexcept { return checkpoint_slots_used_; }
    std::int64_t active_slots_free() const noexcept { return size_.active_slots - active_slots_used_; }
    std::int64_t checkpoint_slots_free() const noexcept { return size_.checkpoint_slots - checkpoint_slots_used_; }
    std::int64_t blocks_per_image() const noexcept { return blocks_per_image_; }

    // `copies` names what open copies hold. Whether Host blocks have one owner shows only with all lists together.
    void check_invariants(const ImageHoldings& copies) const;
    void add_host_lists(std::vector<BlockList>& lists) const;
    std::uint64_t fingerprint() const;
    std::size_t bookkeeping_bytes() const;

    // --- for ReplicaCopies only: asserted, never refused --------------------------------------------------------------
    void pin(ImageId image);
    void unpin(ImageId image);
    void mark_copying(ImageId image, bool copying);
    Result<std::int32_t, Refusal> take_checkpoint_slot();  // kNoImageSlots
    void give_back_checkpoint_slot(std::int32_t slot);
    void publish_on_device(ImageId image, std::int32_t slot);
    void publish_on_host(ImageId image, BlockList blocks, std::uint64_t epoch);
    ImageId publish_snapshot(std::uint64_t epoch, BlockList blocks);
    void settle(ImageId image);

   private:
    Result<const StateImage*, Refusal> find_frozen(ImageId image) const;
    Result<const StateImage*, Refusal> find_active(ImageId image) const;
    Result<Nothing, Refusal> check_own_bytes(ImageId active) const;
    Result<Nothing, Refusal> check_active_slot() const;
    ImageId insert_active(StateImage image);
    std::int32_t pop_slot();

    void check_slots(const ImageHoldings& copies) const;
    void check_pins(const ImageHoldings& copies) const;

    HostTier* host_;
    DeviceMemory* memory_;
    ImageStoreSize size_;
    std::int64_t blocks_per_image_;
    HandleTable<StateImage, ImageTag> images_;
    std::vector<std::int32_t> free_slots_;
    std::int64_t active_slots_used_ = 0;
    std::int64_t checkpoint_slots_used_ = 0;
    std::uint64_t last_epoch_ = 0;
};

}  // namespace ninfer
