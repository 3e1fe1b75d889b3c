#pragma once

// Philox 4x32-10 (Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3", 2011): a counter-based
// generator. The same counter and key give the same words on every machine, so a random number has an address.

#include <cstdint>

#include "cpp/base/inline.h"

namespace ninfer {

struct PhiloxWords {
    std::uint32_t word[4];
};

struct PhiloxKey {
    std::uint32_t word[2];
};

NINFER_INLINE PhiloxWords philox_round(PhiloxWords counter, PhiloxKey key) {
    const std::uint64_t first = std::uint64_t{0xD2511F53U} * counter.word[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57U} * counter.word[2];
    return {
        {static_cast<std::uint32_t>(second >> 32) ^ counter.word[1] ^ key.word[0], static_cast<std::uint32_t>(second),
         static_cast<std::uint32_t>(first >> 32) ^ counter.word[3] ^ key.word[1], static_cast<std::uint32_t>(first)}};
}

NINFER_INLINE PhiloxWords philox4x32_10(PhiloxWords counter, PhiloxKey key) {
    constexpr int kRounds = 10;
    for (int round = 0; round < kRounds; ++round) {
        counter = philox_round(counter, key);
        key.word[0] += 0x9E3779B9U;
        key.word[1] += 0xBB67AE85U;
    }
    return counter;
}

// 64 random bits at (seed, index): key = seed, counter = (index, 0), both low word first; result = words 0 (low) and 1.
NINFER_INLINE std::uint64_t philox_bits(std::uint64_t seed, std::uint64_t index) {
    const PhiloxWords counter{{static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0}};
    const PhiloxKey key{{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)}};
    const PhiloxWords words = philox4x32_10(counter, key);
    return words.word[0] | std::uint64_t{words.word[1]} << 32;
}

}  // namespace ninfer
