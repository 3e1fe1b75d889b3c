#pragma once

// Where a replica of a page or a state image lies. The values appear in refusals.

#include <cstdint>

namespace ninfer {

enum class Tier : std::uint8_t { kDevice = 0, kHost = 1 };

}  // namespace ninfer
