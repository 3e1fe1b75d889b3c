#pragma once

// A 64-bit digest over a store's whole bookkeeping. Tests compare it before and after a refusal: equal means that nothing
// changed. Not for anything that an adversary chooses.

#include <cstdint>

namespace ninfer {

class Fingerprint {
   public:
    template <typename Integer>
    void add(Integer value) {
        value_ = (value_ ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;
        value_ ^= value_ >> 29;
    }
    std::uint64_t value() const noexcept { return value_; }

   private:
    std::uint64_t value_ = 0x243F6A8885A308D3U;
};

}  // namespace ninfer
