#pragma once

// The part of the stores that one decision can change, read once at a revision: holdings and the runs and images that
// they see, each unique object once, with what others outside have of it.
//
// A holding is what one checkpoint has of the stores: a frozen space, and one reference to a frozen image. In the domain
// are those of all owners that may be changed, and the source of the new sequence. Everything else is outside: it keeps
// what it has. A holding that is protected is simply not in the domain, nor is a checkpoint whose image is still to come.
//
// Costs: runs of the holdings' chains, and the pages of runs whose pages are not all in the same place (each once).

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/result.h"
#include "cpp/transaction/resource_axes.h"
#include "cpp/transaction/resource_target.h"
#include "cpp/transaction/state_stores.h"

namespace ninfer {

struct Holding {
    SpaceId kv;
    ImageId image;  // none: a model without recurrent layers

    bool operator==(const Holding&) const = default;
};

// Why a holding cannot be in a domain. kStaleHandle, kActive.
std::optional<Refusal> refusal_of(const Holding& holding, const StateStores& stores);

// Pages of a run, by index in the run, that lie in the same place.
struct DomainSegment {
    std::int64_t begin = 0;
    std::int64_t end = 0;
    bool on_device = false;
    bool on_host = false;
};

struct DomainRun {
    RunId id;
    std::int64_t first_page = 0;  // index in every space that sees it
    std::int64_t pages = 0;
    std::int32_t holdings = 0;        // of the domain
    std::int32_t outside_frozen = 0;  // frozen spaces that are not in the domain
    std::int32_t readers = 0;         // active spaces
    std::int32_t pins = 0;
    std::int32_t first_segment = 0;
    std::int32_t segments = 0;
};

struct DomainImage {
    ImageId id;
    std::int32_t holdings = 0;  // of the domain
    std::int32_t outside = 0;   // references that are not in the domain
    std::int32_t pins = 0;
    bool on_device = false;
    bool on_host = false;
};

struct DomainHolding {
    static constexpr std::int32_t kNoImage = -1;

    Holding holding;
    std::int64_t frontier = 0;
    std::int64_t pages = 0;
    std::int32_t first_link = 0;  // of its chain, from its last run to the root
    std::int32_t links = 0;
    std::int32_t image = kNoImage;
};

class TargetDomain {
   public:
    explicit TargetDomain(const StateStores& stores) : stores_(stores) {}

    // Reads the holdings anew; each space is there once. What was read before is forgotten, its memory is used again.
    // kStaleHandle, kActive (a space or an image is not frozen): the domain is empty then.
    Result<Nothing, Refusal> read(std::span<const Holding> holdings, std::uint64_t revision);

    std::span<const DomainHolding> holdings() const noexcept { return holdings_; }
    std::span<const DomainRun> runs() const noexcept { return runs_; }
    std::span<const DomainImage> images() const noexcept { return images_; }
    // Local indices of runs, from the last one to the root.
    std::span<const std::int32_t> chain(const DomainHolding& holding) const;
    std::span<const DomainSegment> segments(const DomainRun& run) const;

    // Every holding as it is.
    HoldingOutcome identity_of(std::int32_t holding) const;
    std::vector<HoldingOutcome> identity() const;

    std::uint64_t revision() const noexcept { return revision_; }
    const StateStores& stores() const noexcept { return stores_; }
    const ResourceAxes& used() const noexcept { return used_; }
    const ResourceAxes& capacity() const noexcept { return capacity_; }
    std::int64_t blocks_per_page() const noexcept { return stores_.kv->blocks_per_page(); }
    std::int64_t blocks_per_image() const noexcept;

   private:
    void clear();
    void add_chain(DomainHolding& holding);
    std::int32_t add_run(const RunFacts& facts);
    void add_segments(DomainRun& run, const PageRunData& counts);
    std::int32_t add_image(ImageId image);

    StateStores stores_;
    std::uint64_t revision_ = 0;
    ResourceAxes used_;
    ResourceAxes capacity_;
    std::vector<DomainHolding> holdings_;
    std::vector<DomainRun> runs_;
    std::vector<DomainSegment> segments_;
    std::vector<DomainImage> images_;
    std::vector<std::int32_t> links_;
    std::vector<std::int32_t> local_run_;    // [run id] or -1
    std::vector<std::int32_t> local_image_;  // [image slot] or -1
};

}  // namespace ninfer
