#include "cpp/program/protected_owners.h"

#include <algorithm>

namespace ninfer {

std::optional<Refusal> check_owners(const ContextState& state, std::span<const OwnerHandle> owners) {
    for (const OwnerHandle owner : owners)
        if (const auto found = state.owners.find(owner); !found) return found.error();
    return std::nullopt;
}

std::optional<Refusal> check_unprotected(const ContextState& state, CheckpointHandle checkpoint,
                                         std::span<const OwnerHandle> protected_owners) {
    const OwnerHandle owner = state.owners.find(checkpoint).value()->owner;
    if (std::ranges::find(protected_owners, owner) == protected_owners.end()) return std::nullopt;
    return Refusal{RefusalKind::kProtected, static_cast<std::int64_t>(owner.value),
                   static_cast<std::int64_t>(checkpoint.value)};
}

}  // namespace ninfer
