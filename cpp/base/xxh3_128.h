#pragma once

// XXH3 with 128 bits, seed 0 and the default secret, after the published description of the algorithm (xxHash,
// doc/xxhash_spec.md). It finds things quickly; it keeps no secret and resists nobody: who can choose inputs can make
// two with one digest. Whatever it finds must be compared.

#include <cstddef>
#include <cstdint>
#include <span>

namespace ninfer {

struct Digest128 {
    std::uint64_t low = 0;
    std::uint64_t high = 0;

    bool operator==(const Digest128&) const = default;
};

Digest128 xxh3_128(std::span<const std::byte> input) noexcept;

}  // namespace ninfer
