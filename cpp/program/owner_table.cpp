#include "cpp/program/owner_table.h"

#include <algorithm>

namespace ninfer {

void OwnerTable::remove_owner(OwnerHandle owner) {
    NINFER_ASSERT_EQ(owners_.at(owner).checkpoints.size(), 0);
    owners_.erase(owner);
}

CheckpointHandle OwnerTable::add(const Checkpoint& checkpoint) {
    const CheckpointHandle handle = checkpoints_.insert(checkpoint);
    auto& list = owners_.at(checkpoint.owner).checkpoints;
    const auto after =
        std::upper_bound(list.begin(), list.end(), handle, [&](CheckpointHandle, CheckpointHandle other) {
            return checkpoint.frontier < checkpoints_.at(other).frontier;
        });
    list.insert(after, handle);
    return handle;
}

Checkpoint OwnerTable::remove(CheckpointHandle handle) {
    const Checkpoint checkpoint = checkpoints_.erase(handle);
    Owner& owner = owners_.at(checkpoint.owner);
    const auto erased = std::erase(owner.checkpoints, handle);
    NINFER_ASSERT_EQ(erased, 1);
    if (owner.role != OwnerRole::kActive && owner.checkpoints.empty()) owners_.erase(checkpoint.owner);
    return checkpoint;
}

bool OwnerTable::has_open_copies(const Owner& owner) const {
    return std::ranges::any_of(owner.checkpoints,
                               [&](CheckpointHandle handle) { return checkpoints_.at(handle).open_copies > 0; });
}

void OwnerTable::for_each_owner(FunctionRef<void(OwnerHandle, const Owner&)> visit) const { owners_.for_each(visit); }

void OwnerTable::for_each_checkpoint(FunctionRef<void(CheckpointHandle, const Checkpoint&)> visit) const {
    checkpoints_.for_each(visit);
}

void OwnerTable::check_invariants() const {
    std::int64_t listed = 0;
    owners_.for_each([&](OwnerHandle owner, const Owner& item) {
        std::int64_t frontier = 0;
        for (const CheckpointHandle handle : item.checkpoints) {
            const Checkpoint& checkpoint = checkpoints_.at(handle);
            NINFER_ASSERT(checkpoint.owner == owner, "a checkpoint is listed by another owner than its own");
            NINFER_ASSERT_LE(frontier, checkpoint.frontier);
            frontier = checkpoint.frontier;
            ++listed;
        }
        if (item.role != OwnerRole::kActive) NINFER_ASSERT_LT(0, item.checkpoints.size());
    });
    NINFER_ASSERT_EQ(listed, checkpoints_.size());
}

void OwnerTable::add_to(Fingerprint& fingerprint) const {
    owners_.for_each([&](OwnerHandle owner, const Owner& item) {
        fingerprint.add(owner.value);
        fingerprint.add(item.role);
        for (const CheckpointHandle handle : item.checkpoints) fingerprint.add(handle.value);
    });
    checkpoints_.for_each([&](CheckpointHandle handle, const Checkpoint& item) {
        fingerprint.add(handle.value);
        fingerprint.add(item.owner.value);
        fingerprint.add(item.kind);
        fingerprint.add(item.frontier);
        fingerprint.add(item.ledger.value);
        fingerprint.add(item.kv.value);
        fingerprint.add(item.image.value);
        fingerprint.add(item.awaits_image);
        fingerprint.add(item.open_copies);
        fingerprint.add(item.copies_done);
    });
}

}  // namespace ninfer
