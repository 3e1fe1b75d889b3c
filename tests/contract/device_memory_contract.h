#pragma once

// What every device memory that a processor can read keeps (cpp/memory/device_memory.h). An implementation instantiates
// the suite with a type that makes one:  struct Maker { std::unique_ptr<DeviceMemory> make(std::size_t bytes); };

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/memory/device_memory.h"

namespace ninfer::testing_support {

template <typename Maker>
class DeviceMemoryContract : public testing::Test {
   protected:
    Maker maker_;
};

TYPED_TEST_SUITE_P(DeviceMemoryContract);

TYPED_TEST_P(DeviceMemoryContract, ZeroesExactlyTheRange) {
    const auto memory = this->maker_.make(300);
    EXPECT_EQ(memory->size(), 300U);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory->data()) % 64, 0U);
    std::fill_n(memory->data(), 300, std::byte{9});
    memory->zero(64, 100);
    memory->zero(300, 0);
    for (std::size_t i = 0; i < 300; ++i)
        ASSERT_EQ(memory->data()[i], i >= 64 && i < 164 ? std::byte{0} : std::byte{9}) << "byte " << i;
}

TYPED_TEST_P(DeviceMemoryContract, EverySizeIsOneAlignedBlockOfItsOwn) {
    std::vector<std::unique_ptr<DeviceMemory>> memories;
    for (const std::size_t bytes : std::initializer_list<std::size_t>{1, 63, 64, 65, 300, 100'000})
        memories.push_back(this->maker_.make(bytes));
    for (std::size_t i = 0; i < memories.size(); ++i) {
        std::byte* const data = memories[i]->data();
        EXPECT_EQ(memories[i]->data(), data) << "it moves";
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % 64, 0U);
        std::fill_n(data, memories[i]->size(), static_cast<std::byte>(i + 1));
    }
    memories[2]->zero(0, memories[2]->size());
    for (std::size_t i = 0; i < memories.size(); ++i) {
        const auto expected = i == 2 ? std::byte{0} : static_cast<std::byte>(i + 1);
        EXPECT_EQ(std::count(memories[i]->data(), memories[i]->data() + memories[i]->size(), expected),
                  static_cast<std::ptrdiff_t>(memories[i]->size()));
    }
}

TYPED_TEST_P(DeviceMemoryContract, ZeroingBeyondTheEndStopsTheProcess) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    const auto memory = this->maker_.make(128);
    EXPECT_DEATH(memory->zero(129, 0), "left = 129, right = 128");
    EXPECT_DEATH(memory->zero(64, 65), "left = 65, right = 64");
}

REGISTER_TYPED_TEST_SUITE_P(DeviceMemoryContract, ZeroesExactlyTheRange, EverySizeIsOneAlignedBlockOfItsOwn,
                            ZeroingBeyondTheEndStopsTheProcess);

}  // namespace ninfer::testing_support
