#pragma once

// FP64 oracle of cpp/ops/linear.h, from the contract alone. The rounding of activations is part of the contract and is
// done as it says; the products and sums are in double.

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <vector>

#include "tests/ops/oracle/panel_weight.h"

namespace ninfer::oracle {

struct LinearExpectation {
    double value = 0.0;
    double magnitude = 0.0;  // sum of |terms|: what rounding errors scale with
};

// Round to nearest even, by the definition.
inline float round_to_bf16(float x) {
    const std::uint32_t bits = float_to_bits(x);
    const std::uint32_t rest = bits & 0xFFFFU;
    std::uint32_t kept = bits >> 16;
    if (rest > 0x8000U || (rest == 0x8000U && (kept & 1U) != 0)) ++kept;
    return bits_to_float(kept << 16);
}

struct QuantisedInputs {
    std::vector<double> scales;
    std::vector<int> quants;
};

inline QuantisedInputs quantise_inputs(const std::vector<float>& x) {
    QuantisedInputs result;
    for (std::size_t begin = 0; begin < x.size(); begin += 32) {
        const std::size_t end = std::min(begin + 32, x.size());
        float amax = 0.0F;
        for (std::size_t i = begin; i < end; ++i) amax = std::max(amax, std::abs(x[i]));
        const float scale = amax / 127.0F;
        result.scales.push_back(static_cast<double>(scale));
        for (std::size_t i = begin; i < end; ++i) {
            const double level = scale == 0.0F ? 0.0 : std::nearbyint(static_cast<double>(x[i] / scale));
            result.quants.push_back(static_cast<int>(std::clamp(level, -127.0, 127.0)));
        }
    }
    return result;
}

// One output of one row.
inline LinearExpectation linear(const std::vector<float>& x, const PanelWeight& weight, std::int64_t o) {
    LinearExpectation result;
    const auto add = [&](double term) {
        result.value += term;
        result.magnitude += std::abs(term);
    };
    const QuantisedInputs quantised = weight.quantised() ? quantise_inputs(x) : QuantisedInputs{};
    for (std::int64_t i = 0; i < weight.in; ++i) {
        const auto index = static_cast<std::size_t>(i);
        if (weight.quantised())
            add(quantised.scales[index / 32] * quantised.quants[index] * weight.dequantised(o, i));
        else
            add(static_cast<double>(weight.storage == WeightStorage::kBf16 ? round_to_bf16(x[index]) : x[index]) *
                weight.dequantised(o, i));
    }
    return result;
}

// |difference| relative to the sum of |terms|: one f32 rounding of the accumulator per step of up to 1,024 inputs,
// which in the worst case all fall the same way, and two for each scale.
inline constexpr double kLinearTolerance = 1024 * 0x1p-24;

}  // namespace ninfer::oracle
