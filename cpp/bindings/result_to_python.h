#pragma once

// What a call of the core gives to Python: its value, or the Refusal as a value. Handles become integers.

#include <nanobind/nanobind.h>

#include <type_traits>
#include <utility>
#include <variant>

#include "cpp/base/result.h"
#include "cpp/state/handle.h"
#include "cpp/state/refusal.h"

namespace ninfer::bindings {

template <typename T>
inline constexpr bool kIsHandle = false;
template <typename Tag>
inline constexpr bool kIsHandle<Handle<Tag>> = true;

template <typename Out, typename T>
std::variant<Out, Refusal> to_python(Result<T, Refusal> result) {
    if (!result) return result.error();
    if constexpr (std::is_same_v<T, Nothing>)
        return Out{};
    else if constexpr (kIsHandle<T>)
        return result.value().value;
    else
        return std::move(result.value());
}

inline void require(bool holds, const char* message) {
    if (!holds) throw nanobind::value_error(message);
}

}  // namespace ninfer::bindings
