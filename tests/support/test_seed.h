#pragma once

// The seed of a test's random numbers, for every C++ test.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace ninfer::testing_support {

// Fresh each run (NINFER_TEST_SEED repeats one), the same all through the run. Fixtures show it with every failure
// through a SeedTrace.
inline std::uint64_t test_seed() {
    static const std::uint64_t seed = [] {
        const char* text = std::getenv("NINFER_TEST_SEED");
        return text != nullptr ? std::strtoull(text, nullptr, 10) : std::uint64_t{std::random_device{}()};
    }();
    return seed;
}

// While it lives, failures print the seed.
class SeedTrace {
   private:
    testing::ScopedTrace trace_{__FILE__, __LINE__, "NINFER_TEST_SEED=" + std::to_string(test_seed())};
};

}  // namespace ninfer::testing_support
