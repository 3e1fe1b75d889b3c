#pragma once

// What tokens are besides their ids, as Python says it.

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <tuple>
#include <vector>

#include "cpp/program/token_span.h"

namespace ninfer::bindings {

// begin, type, positions, steps, and for media: its digest's low and high half, and the offset in it.
using SpanRow = std::tuple<std::int64_t, std::int32_t, AxisPositions, AxisPositions,
                           std::optional<std::tuple<std::uint64_t, std::uint64_t, std::int64_t>>>;

// Spans of the tokens [begin, end). None: text. ValueError where they do not cover them in order.
std::vector<TokenSpan> token_spans(const std::vector<SpanRow>& rows, std::int64_t begin, std::int64_t end);

}  // namespace ninfer::bindings
