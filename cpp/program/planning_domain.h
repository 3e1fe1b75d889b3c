#pragma once

// The inactive checkpoints that one planning problem may change (eligible: of owners that are neither active nor
// protected, without open copies), and the sources of its candidates, which may be protected. Read once.

#include <span>
#include <vector>

#include "cpp/program/context_state.h"
#include "cpp/transaction/target_domain.h"

namespace ninfer {

// Where a holding's pages lie.
struct HoldingShape {
    std::int64_t on_device = 0;
    std::int64_t on_host = 0;
    std::int64_t on_both = 0;
    std::int64_t device_end = 0;   // no page from here on is on Device
    std::int64_t host_suffix = 0;  // every page from here on is on Host
    bool image_on_device = false;
    bool image_on_host = false;

    bool has_image() const noexcept { return image_on_device || image_on_host; }
};

struct DomainMember {
    CheckpointHandle checkpoint;
    OwnerHandle owner;
    std::int32_t owner_begin = 0;  // members of the same owner are [owner_begin, owner_end)
    std::int32_t owner_end = 0;
    bool eligible = false;
    HoldingShape shape;
};

class PlanningDomain {
   public:
    static constexpr std::int32_t kNoMember = -1;

    explicit PlanningDomain(ContextState& state) : state_(state), targets_(state.stores.state_stores()) {}

    // Sources are valid handles; each may be there more than once.
    void read(std::span<const OwnerHandle> protected_owners, std::span<const CheckpointHandle> sources);
    // Members in the order of owners, one per holding of targets().
    std::span<const DomainMember> members() const noexcept { return members_; }
    const TargetDomain& targets() const noexcept { return targets_; }
    std::int32_t member_of(CheckpointHandle checkpoint) const;
    // The first of the owner's members, or kNoMember.
    std::int32_t first_member_of(OwnerHandle owner) const;

   private:
    void add_owner(OwnerHandle owner, std::span<const CheckpointHandle> checkpoints, bool eligible);
    HoldingShape shape_of(const DomainHolding& holding) const;

    ContextState& state_;
    TargetDomain targets_;
    std::vector<DomainMember> members_;
    std::vector<Holding> holdings_;
    std::vector<std::int32_t> member_of_slot_;  // [checkpoint slot]
    std::vector<OwnerHandle> protected_;        // sorted
    std::vector<CheckpointHandle> sources_;     // sorted
};

}  // namespace ninfer
