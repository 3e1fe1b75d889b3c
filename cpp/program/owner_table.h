#pragma once

// Owners and their checkpoints by handle.
//
// Invariants (check_invariants): a checkpoint is listed by exactly its owner; lists ascend by frontier; an owner that is
// not active has a checkpoint. What a checkpoint holds of the stores is its user's to give back: this table only lists.

#include "cpp/base/function_ref.h"
#include "cpp/program/checkpoint.h"
#include "cpp/state/fingerprint.h"

namespace ninfer {

class OwnerTable {
   public:
    OwnerHandle add_owner(OwnerRole role) { return owners_.insert({role, {}}); }
    void set_role(OwnerHandle owner, OwnerRole role) { owners_.at(owner).role = role; }
    // The owner has no checkpoints.
    void remove_owner(OwnerHandle owner);

    // Into the owner that it names.
    CheckpointHandle add(const Checkpoint& checkpoint);
    // An owner that is not active goes with its last checkpoint.
    Checkpoint remove(CheckpointHandle handle);

    Result<const Owner*, Refusal> find(OwnerHandle owner) const { return owners_.find(owner); }
    Result<const Checkpoint*, Refusal> find(CheckpointHandle checkpoint) const { return checkpoints_.find(checkpoint); }
    Checkpoint& at(CheckpointHandle checkpoint) { return checkpoints_.at(checkpoint); }
    // Of any of its checkpoints, also those that wait for their image.
    bool has_open_copies(const Owner& owner) const;
    void for_each_owner(FunctionRef<void(OwnerHandle, const Owner&)> visit) const;
    void for_each_checkpoint(FunctionRef<void(CheckpointHandle, const Checkpoint&)> visit) const;

    std::int64_t owners() const noexcept { return owners_.size(); }
    std::int64_t checkpoints() const noexcept { return checkpoints_.size(); }

    void check_invariants() const;
    void add_to(Fingerprint& fingerprint) const;

   private:
    // Python sees sequences, owners and checkpoints as numbers: one that is given for another is stale. All fit
    // into signed 64 bits, as the columns of tables need.
    HandleTable<Owner, OwnerTag> owners_{0x2000'0001};
    HandleTable<Checkpoint, CheckpointTag> checkpoints_{0x4000'0001};
};

}  // namespace ninfer
