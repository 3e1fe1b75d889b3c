#pragma once

// Result<T, E>: the value or an expected "no". GCC 12 has no std::expected in C++20 mode.

#include <utility>
#include <variant>

#include "cpp/base/assert.h"

namespace ninfer {

// The value of a success that has nothing to say.
struct Nothing {};

template <typename T, typename E>
class [[nodiscard]] Result {
   public:
    Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
    Result(E error) : state_(std::in_place_index<1>, std::move(error)) {}

    bool has_value() const noexcept { return state_.index() == 0; }
    explicit operator bool() const noexcept { return has_value(); }

    T& value() & {
        NINFER_ASSERT(has_value(), "value() of a refused Result");
        return std::get<0>(state_);
    }
    T&& value() && {
        NINFER_ASSERT(has_value(), "value() of a refused Result");
        return std::get<0>(std::move(state_));
    }
    const T& value() const& {
        NINFER_ASSERT(has_value(), "value() of a refused Result");
        return std::get<0>(state_);
    }
    const E& error() const {
        NINFER_ASSERT(!has_value(), "error() of a successful Result");
        return std::get<1>(state_);
    }

   private:
    std::variant<T, E> state_;
};

}  // namespace ninfer
