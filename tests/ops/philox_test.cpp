#include "cpp/ops/philox.h"

#include <gtest/gtest.h>

namespace ninfer {
namespace {

struct Known {
    PhiloxWords counter;
    PhiloxKey key;
    PhiloxWords expected;
};

// The published known answers of the generator's authors (Random123, kat_vectors).
constexpr Known kKnownAnswers[] = {
    {{{0, 0, 0, 0}}, {{0, 0}}, {{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}}},
    {{{0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}},
     {{0xFFFFFFFF, 0xFFFFFFFF}},
     {{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}}},
    {{{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}},
     {{0xA4093822, 0x299F31D0}},
     {{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}}},
};

TEST(PhiloxTest, GivesTheKnownAnswers) {
    for (const Known& known : kKnownAnswers) {
        const PhiloxWords words = philox4x32_10(known.counter, known.key);
        for (int i = 0; i < 4; ++i) EXPECT_EQ(words.word[i], known.expected.word[i]);
    }
}

TEST(PhiloxTest, SeedIsTheKeyAndIndexTheCounter) {
    const PhiloxWords words = philox4x32_10({{7, 9, 0, 0}}, {{3, 5}});
    const std::uint64_t bits = philox_bits(std::uint64_t{5} << 32 | 3, std::uint64_t{9} << 32 | 7);
    EXPECT_EQ(bits, std::uint64_t{words.word[1]} << 32 | words.word[0]);
    EXPECT_EQ(philox_bits(0, 0), 0xE169C58D6627E8D5U);
}

}  // namespace
}  // namespace ninfer
