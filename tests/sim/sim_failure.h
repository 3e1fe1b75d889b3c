#pragma once

// What ends a simulation: the store and the model disagree. Thrown at the disagreement, caught by the driver, which
// knows seed, step and operation.

#include <stdexcept>
#include <string>

namespace ninfer::sim {

class SimFailure : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
};

template <typename Expected, typename Found>
void expect_equal(const Expected& expected, const Found& found, const char* what) {
    if (expected == static_cast<Expected>(found)) [[likely]]
        return;
    throw SimFailure(std::string(what) + ": expected " + std::to_string(expected) + ", found " + std::to_string(found));
}

}  // namespace ninfer::sim
