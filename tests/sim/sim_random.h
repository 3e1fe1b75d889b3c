#pragma once

// The simulator's random numbers: splitmix64, the same on every machine and standard library.

#include <cstdint>

namespace ninfer::sim {

inline std::uint64_t mix(std::uint64_t value) {
    value += 0x9e3779b97f4a7c15;
    value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9;
    value = (value ^ (value >> 27)) * 0x94d049bb133111eb;
    return value ^ (value >> 31);
}

class SimRandom {
   public:
    explicit SimRandom(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15); }
    // 0 .. count - 1; the bias is far below what a simulation notices.
    int below(int count) { return static_cast<int>((next() >> 32) * static_cast<std::uint64_t>(count) >> 32); }
    int between(int first, int last) { return first + below(last - first + 1); }
    bool percent(int chance) { return below(100) < chance; }

   private:
    std::uint64_t state_;
};

}  // namespace ninfer::sim
