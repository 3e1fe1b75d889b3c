#pragma once

#include <cstdint>

namespace ninfer {

// Where a ledger token comes from: the request, or the answer (sampled, or forced in a sample's place).
enum class TokenOrigin : std::uint8_t { kPrompt, kOutput };

}  // namespace ninfer
