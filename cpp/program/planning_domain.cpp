#include "cpp/program/planning_domain.h"

#include <algorithm>
#include <ranges>

namespace ninfer {

namespace {

template <typename Tag>
bool before(Handle<Tag> left, Handle<Tag> right) {
    return left.value < right.value;
}

template <typename Tag>
void sort_into(std::vector<Handle<Tag>>& sorted, std::span<const Handle<Tag>> handles) {
    sorted.assign(handles.begin(), handles.end());
    std::ranges::sort(sorted, before<Tag>);
}

template <typename Tag>
bool contains(const std::vector<Handle<Tag>>& sorted, Handle<Tag> handle) {
    return std::ranges::binary_search(sorted, handle, before<Tag>);
}

}  // namespace

void PlanningDomain::read(std::span<const OwnerHandle> protected_owners, std::span<const CheckpointHandle> sources) {
    sort_into(protected_, protected_owners);
    sort_into(sources_, sources);
    members_.clear();
    holdings_.clear();
    member_of_slot_.clear();
    state_.owners.for_each_owner([&](OwnerHandle handle, const Owner& owner) {
        const bool eligible =
            owner.role != OwnerRole::kActive && !contains(protected_, handle) && !state_.owners.has_open_copies(owner);
        add_owner(handle, owner.checkpoints, eligible);
    });
    const auto read = targets_.read(holdings_, state_.resource_revision);
    NINFER_ASSERT(read.has_value(), "a published checkpoint is not frozen");
    for (std::size_t i = 0; i < members_.size(); ++i) members_[i].shape = shape_of(targets_.holdings()[i]);
}

void PlanningDomain::add_owner(OwnerHandle owner, std::span<const CheckpointHandle> checkpoints, bool eligible) {
    const auto begin = static_cast<std::int32_t>(members_.size());
    for (const CheckpointHandle handle : checkpoints) {
        if (!eligible && !contains(sources_, handle)) continue;
        const Checkpoint& checkpoint = *state_.owners.find(handle).value();
        if (handle.slot() >= member_of_slot_.size()) member_of_slot_.resize(handle.slot() + 1, kNoMember);
        member_of_slot_[handle.slot()] = static_cast<std::int32_t>(members_.size());
        members_.push_back({.checkpoint = handle,
                            .owner = owner,
                            .owner_begin = begin,
                            .owner_end = begin,
                            .eligible = eligible,
                            .shape = {}});
        holdings_.push_back({checkpoint.kv, checkpoint.image});
    }
    const auto end = static_cast<std::int32_t>(members_.size());
    for (std::int32_t i = begin; i < end; ++i) members_[static_cast<std::size_t>(i)].owner_end = end;
}

std::int32_t PlanningDomain::member_of(CheckpointHandle checkpoint) const {
    if (checkpoint.slot() >= member_of_slot_.size()) return kNoMember;
    const std::int32_t member = member_of_slot_[checkpoint.slot()];
    if (member == kNoMember || members_[static_cast<std::size_t>(member)].checkpoint != checkpoint) return kNoMember;
    return member;
}

std::int32_t PlanningDomain::first_member_of(OwnerHandle owner) const {
    const auto found = state_.owners.find(owner);
    if (!found) return kNoMember;
    for (const CheckpointHandle checkpoint : found.value()->checkpoints)
        if (const std::int32_t member = member_of(checkpoint); member != kNoMember)
            return members_[static_cast<std::size_t>(member)].owner_begin;
    return kNoMember;
}

HoldingShape PlanningDomain::shape_of(const DomainHolding& holding) const {
    HoldingShape shape;
    shape.host_suffix = holding.pages;
    bool all_on_host = true;  // of what has been seen, from the end on
    for (const std::int32_t link : targets_.chain(holding)) {
        const DomainRun& run = targets_.runs()[static_cast<std::size_t>(link)];
        for (const DomainSegment& segment : targets_.segments(run) | std::views::reverse) {
            const std::int64_t pages = segment.end - segment.begin;
            shape.on_device += segment.on_device ? pages : 0;
            shape.on_host += segment.on_host ? pages : 0;
            shape.on_both += segment.on_device && segment.on_host ? pages : 0;
            if (segment.on_device) shape.device_end = std::max(shape.device_end, run.first_page + segment.end);
            all_on_host = all_on_host && segment.on_host;
            if (all_on_host) shape.host_suffix = run.first_page + segment.begin;
        }
    }
    if (holding.image == DomainHolding::kNoImage) return shape;
    const DomainImage& image = targets_.images()[static_cast<std::size_t>(holding.image)];
    shape.image_on_device = image.on_device;
    shape.image_on_host = image.on_host;
    return shape;
}

}  // namespace ninfer
