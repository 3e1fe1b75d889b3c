#pragma once

// What must be true of a program's state (cpp/program/context_state.h), in the plainest form: pages and images are records,
// whoever holds some lists them, a copy is a record. There are no runs, no counters and no plans: references, pins and
// used capacity are counted anew whenever somebody asks, and a transition is what happens to the lists. No code of the stores,
// of transactions or of planning is used, only handles as names.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cpp/program/checkpoint.h"
#include "cpp/program/context_stores.h"
#include "cpp/program/copy_job.h"
#include "cpp/transaction/resource_axes.h"
#include "tests/sim/model_target.h"
#include "tests/sim/store_model.h"
#include "tests/sim/token_list.h"

namespace ninfer::sim {

struct PageRecord {
    bool on_device = true;
    bool on_host = false;
    int coverage = 0;
};

struct ImageRecord {
    bool active = true;
    bool unsettled = false;
    ImageKey source = 0;  // of an active one: whose bytes it reads, or waits for
    bool on_device = true;
    bool on_host = false;
    std::uint64_t value = 0;  // its bytes are derived from it
};

// An address space.
struct ViewRecord {
    bool there = false;
    bool active = false;
    int frontier = 0;
    int reserved = 0;
    PageKey tail_source = 0;  // its last page waits for a copy of this one
    std::vector<PageKey> pages = {};
};

// What a sequence took over, and what of it must not be lost before it has computed.
struct TakeoverRecord {
    bool taken = false;
    bool consumed = false;
    CheckpointKind kind = CheckpointKind::kLongAnchor;
    int start = 0;
    ViewRecord view = {};  // while its own tail is not there
    TokenList tokens = {};
};

struct SequenceRecord {
    int reserved = 0;
    int computed = 0;
    TokenList tokens = {};
    int salt = 0;
    ViewRecord view = {};
    ImageKey image = 0;
    Key owner = 0;
    TakeoverRecord takeover = {};
    int waits = 0;
    int snapshots = 0;
    bool copy_failed = false;

    bool has_computed() const { return computed > takeover.start; }
};

struct CheckpointRecord {
    Key owner = 0;
    CheckpointKind kind = CheckpointKind::kLongAnchor;
    TokenList tokens = {};  // as many as its frontier
    int salt = 0;
    ViewRecord view = {};
    ImageKey image = 0;
    bool awaits_image = false;
    int open_copies = 0;
    int copies_done = 0;

    int frontier() const { return static_cast<int>(tokens.size()); }
};

struct OwnerRecord {
    OwnerRole role = OwnerRole::kActive;
    std::vector<Key> checkpoints = {};  // by ascending frontier
};

struct CopyRecord {
    CopyKind kind = CopyKind::kPageToHost;
    CopyTicket ticket = {};
    PageKey page = 0;
    PageKey tail = 0;
    ImageKey image = 0;
    ImageKey restored = 0;
};

struct JobRecord {
    CopyRecord copy;
    CopyPurpose purpose = CopyPurpose::kPlacement;
    Key sequence = 0;
    Key checkpoint = 0;
};

struct CondemnedRecord {
    ViewRecord view;
    ImageKey image = 0;
};

// Generations of the lanes, which are never given up.
struct LaneHistory {
    std::map<std::uint32_t, std::uint32_t> generations;
    std::vector<Key> dead;
    Refusal stale(Key handle) const;
};

class ContextModel {
   public:
    explicit ContextModel(const ContextSizes& its_sizes) : sizes(its_sizes) {}

    ContextSizes sizes;
    std::map<PageKey, PageRecord> pages;
    std::map<ImageKey, ImageRecord> images;
    std::map<Key, SequenceRecord> sequences;
    std::map<Key, CheckpointRecord> checkpoints;
    std::map<Key, OwnerRecord> owners;
    std::vector<JobRecord> jobs;
    std::vector<CopyRecord> draining;
    std::vector<CondemnedRecord> condemned;
    std::optional<ModelTransition> transition;
    std::vector<CopyRecord> transition_copies;  // of its open round
    ViewRecord transition_view;                 // of the new sequence
    ImageKey transition_image = 0;
    std::uint64_t revision = 0;
    std::uint64_t submitted = 0;  // copies that the engine was ever given

    bool has_images() const { return sizes.image_bytes > 0; }
    int blocks_per_image() const;
    ResourceAxes capacity() const;

    // --- counted anew each time -------------------------------------------------------------------------------------
    std::vector<const ViewRecord*> views() const;
    int viewers(PageKey page) const;
    int readers(PageKey page) const;  // active ones
    int pins(PageKey page) const;
    bool copying(PageKey page) const;
    int references(ImageKey image) const;
    int image_pins(ImageKey image) const;
    bool image_copying(ImageKey image) const;
    bool any_pin() const;
    UsedVector used() const;
    ResourceAxes axes() const { return axes_of(used()); }
    ResourceAxes free() const { return capacity() - axes(); }
    int on_device(const ViewRecord& view, int pages_wanted) const;

    // --- changes ----------------------------------------------------------------------------------------------------
    PageKey new_page();
    ImageKey new_image(const ImageRecord& image);
    // Pages and images that nobody holds are gone.
    void sweep();
    // Whether somebody pins what would go with it.
    bool view_is_pinned(const ViewRecord& view) const;
    void release_or_condemn(CondemnedRecord parts);
    bool release_condemned();
    // What the sequence holds of its source.
    void release_source(SequenceRecord& sequence);
    // A new active view that shares the full pages of a frontier, and waits for a copy of an unaligned tail.
    ViewRecord forked(const ViewRecord& source, int frontier, int reserved);
    // The view itself goes on. It has been taken away from whoever had it.
    ViewRecord consumed(const ViewRecord& source, int reserved, bool in_place);
    // What a copy that has arrived makes; the new image of a snapshot.
    ImageKey publish(const CopyRecord& copy);
    // The record of a copy that the engine is given now.
    CopyRecord submit(CopyRecord copy);
    void list(Key checkpoint);
    // Out of its owner, which may go with it.
    CheckpointRecord unlist(Key checkpoint);
    void discard(Key checkpoint);
    std::vector<Key> deeper(Key source, int frontier) const;
    // Of sequences that have ended, whose image a copy still uses.
    int lanes_ending() const;
    bool has_lane() const { return std::ssize(sequences) + lanes_ending() < sizes.lanes; }

    std::string text() const;

   private:
    std::vector<ViewRecord*> all_views();
    bool try_release(CondemnedRecord& parts);
    std::vector<const CopyRecord*> copies() const;

    PageKey last_page_ = 0;
    ImageKey last_image_ = 0;
};

}  // namespace ninfer::sim
