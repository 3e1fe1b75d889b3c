#pragma once

// What a complete target leads to, derived from the joint post-state: every run and every image is judged once, by what
// all that remain want of it together. Nothing is summed up per holding: one alias that goes frees nothing, the last two
// that go together free their pages once. Facts only; no prices.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/function_ref.h"
#include "cpp/transaction/resource_stage.h"
#include "cpp/transaction/target_domain.h"

namespace ninfer {

// How the pages, and the image, of the new sequence come about.
enum class KvActivation : std::uint8_t {
    kNone,
    kOpen,  // empty
    kFork,  // shares full pages, has a copy of an unaligned tail
    kMove,  // goes on in the source's pages
};

enum class ImageActivation : std::uint8_t {
    kNone,
    kOpen,     // zeros
    kFork,     // reads the source until its first commit
    kMove,     // the source's image itself
    kRestore,  // copied from Host straight into the active slot
};

struct CopyWork {
    std::int64_t operations = 0;
    std::int64_t bytes = 0;

    bool operator==(const CopyWork&) const = default;

    CopyWork& operator+=(const CopyWork& more) {
        operations += more.operations;
        bytes += more.bytes;
        return *this;
    }
};

struct ResourceProjection {
    std::array<ResourceAxes, kResourceStages.size()> used;  // at each stage
    ResourceAxes peak;      // of the stages, and of the last one with the room that is asked for
    ResourceAxes residual;  // by how much the peak exceeds the capacity; nothing: the target fits
    std::int64_t pins = 0;  // on what the target would change: it has to wait for open copies or unsettled sequences
    CopyWork to_host;
    CopyWork to_device;        // restores of pages and of the image
    CopyWork within_device;    // the copy of an unaligned tail
    std::int64_t removed = 0;  // holdings that go, a consumed source among them
    KvActivation kv = KvActivation::kNone;
    ImageActivation image = ImageActivation::kNone;
    bool copies_tail = false;
    std::int64_t reserved_pages = 0;  // to be promised to the new sequence

    bool operator==(const ResourceProjection&) const = default;

    ResourceAxes& used_at(ResourceStage stage) { return used[static_cast<std::size_t>(stage)]; }
    const ResourceAxes& used_at(ResourceStage stage) const { return used[static_cast<std::size_t>(stage)]; }
    bool fits() const { return residual == ResourceAxes{}; }
    bool needs_copies() const { return to_host.operations + to_device.operations + within_device.operations > 0; }
};

struct PageRange {  // [begin, end) of a run's pages, by index in the run
    std::int64_t begin = 0;
    std::int64_t end = 0;

    std::int64_t size() const noexcept { return end - begin; }
};

// What happens to the pages of one segment. Ranges may be empty. The two last ones happen at kCommitted.
struct SegmentChange {
    PageRange gone;                 // released with the last holding that has them
    PageRange drop_host;            // stay on Device
    PageRange drop_device;          // are on Host already
    PageRange demote;               // are copied to Host and leave the device
    PageRange restore;              // are copied to Device
    PageRange gone_at_commit;       // go with the consumed source
    PageRange drop_host_at_commit;  // restored ones whose Host replica nobody wants any more

    bool none() const noexcept;
};

// What happens to an image, besides the activation.
struct ImageChange {
    bool gone = false;
    bool drop_host = false;
    bool drop_device = false;
    bool demote = false;
    bool gone_at_commit = false;

    bool none() const noexcept { return !(gone || drop_host || drop_device || demote || gone_at_commit); }
};

// Where what a holding keeps lies when the target is reached. All zero if it is gone.
struct HoldingPlacement {
    std::int64_t pages = 0;
    std::int64_t pages_on_device = 0;
    std::int64_t pages_on_host = 0;
    bool image_on_device = false;
    bool image_on_host = false;

    bool operator==(const HoldingPlacement&) const = default;
};

// Projects targets of one domain. Its memory is used again: a projection allocates nothing.
// The domain outlives it, and must not be read anew between project and the questions about it.
class ResourceProjector {
   public:
    explicit ResourceProjector(const TargetDomain& domain) : domain_(&domain) {}

    // Costs the links of all chains and the segments. The target is checked (check_target).
    ResourceProjection project(std::span<const HoldingOutcome> outcomes, const ResourceNeed& need);

    const TargetDomain& domain() const noexcept { return *domain_; }

    // About the last projected target; its outcomes and need must still be there.
    HoldingPlacement placement(std::int32_t holding) const;
    void for_each_segment_change(FunctionRef<void(const DomainRun&, const SegmentChange&)> visit) const;
    void for_each_image_change(FunctionRef<void(const DomainImage&, const ImageChange&)> visit) const;

   private:
    // How many of a run's first pages are wanted. Until the commit a consumed source counts as a survivor.
    struct RunWants {
        std::int64_t kept = 0;
        std::int64_t on_device = 0;
        std::int64_t on_host = 0;
        std::int64_t kept_after = 0;  // from the commit on
        std::int64_t needed = 0;      // on Device, by the new sequence
        std::int64_t tail = -1;       // the page that is written in place, if it is in this run

        bool all_as_it_is(std::int64_t pages) const {
            return needed == 0 && tail < 0 && kept == pages && on_device == pages && on_host == pages &&
                   kept_after == pages;
        }
    };
    struct ImageWants {
        std::int32_t holders = 0;  // that remain; a consumed source is one
        bool on_device = false;
        bool on_host = false;
        bool is_source = false;
        bool last_of_source = false;  // it is consumed, and nobody else remains
    };

    void collect_wants();
    void want_outside();
    void want_holding(std::int32_t holding);
    void want_source();
    bool tail_is_shared(const DomainHolding& source) const;
    SegmentChange change_of(const RunWants& wants, const DomainSegment& segment) const;
    ImageChange change_of(std::size_t image) const;
    void add_segments(ResourceProjection& projection) const;
    void add_segment(ResourceProjection& projection, const DomainSegment& segment, const SegmentChange& change) const;
    void add_images(ResourceProjection& projection) const;
    void add_activation(ResourceProjection& projection) const;
    std::int64_t image_bytes() const;
    bool consumes() const noexcept { return need_.kind == ResourceNeed::Kind::kSource && need_.consumes; }

    const TargetDomain* domain_;
    std::span<const HoldingOutcome> outcomes_;
    ResourceNeed need_;
    std::vector<RunWants> run_wants_;      // [run]
    std::vector<ImageWants> image_wants_;  // [image]
    KvActivation kv_ = KvActivation::kNone;
    ImageActivation image_ = ImageActivation::kNone;
};

}  // namespace ninfer
