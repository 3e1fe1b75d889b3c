#include "cpp/weights/quantise_group.h"

#include <algorithm>
#include <cmath>

#include "cpp/weights/float16.h"

namespace ninfer {

namespace {

constexpr int kGroup = 32;
constexpr float kQ8Levels = 127.0F;
constexpr float kQ4Levels = 15.0F;
// Fractions of the full range whose levels are tried; the clipped outliers cost less than the finer step gains.
constexpr float kRangeFractions[] = {0.97F, 0.92F, 0.87F, 0.81F};

// Nearest even for |x| < 2^22, in a form that compilers vectorise for any CPU.
float round_nearest_even(float x) {
    constexpr float kMagic = 12582912.0F;
    return (x + kMagic) - kMagic;
}

struct Q4Fit {
    float scale = 0.0F;
    float minimum = 0.0F;
    float squared_error = 0.0F;
    float levels[kGroup] = {};
};

// Levels of the weights for a scale and minimum that are first rounded to f16.
Q4Fit fit_levels(const float* weights, float wanted_scale, float wanted_minimum) {
    Q4Fit fit;
    fit.scale = f16_to_f32(f32_to_f16(wanted_scale));
    fit.minimum = f16_to_f32(f32_to_f16(wanted_minimum));
    // A scale of zero (all weights equal, or closer than f16 resolves) leaves every level at 0.
    const float inverse = fit.scale > 0.0F ? 1.0F / fit.scale : 0.0F;
    float errors[4] = {};
    for (int i = 0; i < kGroup; ++i) {
        const float raw = round_nearest_even(std::clamp((weights[i] - fit.minimum) * inverse, 0.0F, kQ4Levels));
        fit.levels[i] = raw;
        const float error = fit.scale * raw + fit.minimum - weights[i];
        errors[i % 4] += error * error;
    }
    fit.squared_error = (errors[0] + errors[1]) + (errors[2] + errors[3]);
    return fit;
}

// Scale and minimum of least squared error for the levels of `fit`.
Q4Fit refit(const float* weights, const Q4Fit& fit) {
    float level_sum = 0.0F;
    float level_squares = 0.0F;
    float weight_sum = 0.0F;
    float products = 0.0F;
    for (int i = 0; i < kGroup; ++i) {
        level_sum += fit.levels[i];
        level_squares += fit.levels[i] * fit.levels[i];
        weight_sum += weights[i];
        products += fit.levels[i] * weights[i];
    }
    const float determinant = kGroup * level_squares - level_sum * level_sum;
    if (determinant <= 0.0F) return fit;
    const float scale = (kGroup * products - level_sum * weight_sum) / determinant;
    const float minimum = (weight_sum - scale * level_sum) / kGroup;
    return scale > 0.0F ? fit_levels(weights, scale, minimum) : fit;
}

}  // namespace

std::optional<Q8Group> quantise_q8(const float* weights) {
    float amax = 0.0F;
    for (int i = 0; i < kGroup; ++i) amax = std::max(amax, std::abs(weights[i]));
    Q8Group result;
    result.scale = f32_to_f16(amax / kQ8Levels);
    if (!is_finite_f16(result.scale)) return std::nullopt;
    const float scale = f16_to_f32(result.scale);
    if (scale == 0.0F) return result;
    for (int i = 0; i < kGroup; ++i) {
        const float level = round_nearest_even(std::clamp(weights[i] / scale, -kQ8Levels, kQ8Levels));
        result.quants[i] = static_cast<std::int8_t>(level);
    }
    return result;
}

std::optional<Q4Group> quantise_q4(const float* weights) {
    const auto [low, high] = std::minmax_element(weights, weights + kGroup);
    const float range = *high - *low;
    Q4Group result;
    if (!is_finite_f16(f32_to_f16(range / kQ4Levels)) || !is_finite_f16(f32_to_f16(*low))) return std::nullopt;
    Q4Fit best = fit_levels(weights, range / kQ4Levels, *low);
    for (const float fraction : kRangeFractions) {
        if (best.squared_error == 0.0F) break;
        const float clipped = 0.5F * (1.0F - fraction) * range;
        const Q4Fit start = fit_levels(weights, fraction * range / kQ4Levels, *low + clipped);
        const Q4Fit fitted = refit(weights, start);
        if (fitted.squared_error < best.squared_error) best = fitted;
    }
    result.scale = f32_to_f16(best.scale);
    result.minimum = f32_to_f16(best.minimum);
    for (int i = 0; i < kGroup; ++i) result.quants[i] = static_cast<std::uint8_t>(best.levels[i]);
    return result;
}

}  // namespace ninfer
