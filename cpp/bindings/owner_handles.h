#pragma once

#include <cstdint>
#include <vector>

#include "cpp/program/owner.h"

namespace ninfer::bindings {

inline std::vector<OwnerHandle> owners_of(const std::vector<std::uint64_t>& values) {
    std::vector<OwnerHandle> owners;
    for (const std::uint64_t value : values) owners.push_back({value});
    return owners;
}

}  // namespace ninfer::bindings
