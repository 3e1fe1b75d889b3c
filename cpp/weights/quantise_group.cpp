#include "cpp/weights/quantise_group.h"

#include <emmintrin.h>

#include <algorithm>

#include "cpp/weights/float16.h"

namespace ninfer {

namespace {

constexpr int kGroup = 32;
constexpr float kQ8Levels = 127.0F;
constexpr float kQ4Levels = 15.0F;
// Fractions of the full range whose levels are tried; the clipped outliers cost less than the finer step gains.
constexpr float kRangeFractions[] = {1.0F, 0.96F, 0.91F, 0.86F, 0.80F};

// SSE2 is in every x86-64 CPU; its conversion to integers rounds to nearest even.
__m128 round_nearest_even(__m128 x) { return _mm_cvtepi32_ps(_mm_cvtps_epi32(x)); }

__m128 clamp(__m128 x, float low, float high) { return _mm_max_ps(_mm_min_ps(x, _mm_set1_ps(high)), _mm_set1_ps(low)); }

float sum_of(__m128 x) {
    float lanes[4];
    _mm_storeu_ps(lanes, x);
    return (lanes[0] + lanes[2]) + (lanes[1] + lanes[3]);
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
    const __m128 inverse = _mm_set1_ps(fit.scale > 0.0F ? 1.0F / fit.scale : 0.0F);
    const __m128 scale = _mm_set1_ps(fit.scale);
    const __m128 minimum = _mm_set1_ps(fit.minimum);
    __m128 errors = _mm_setzero_ps();
    for (int i = 0; i < kGroup; i += 4) {
        const __m128 weight = _mm_loadu_ps(weights + i);
        const __m128 raw = clamp(_mm_mul_ps(_mm_sub_ps(weight, minimum), inverse), 0.0F, kQ4Levels);
        const __m128 level = round_nearest_even(raw);
        _mm_storeu_ps(fit.levels + i, level);
        const __m128 error = _mm_sub_ps(_mm_add_ps(_mm_mul_ps(scale, level), minimum), weight);
        errors = _mm_add_ps(errors, _mm_mul_ps(error, error));
    }
    fit.squared_error = sum_of(errors);
    return fit;
}

// The fit for the scale and minimum of least squared error for the levels of `fit`.
Q4Fit refit(const float* weights, const Q4Fit& fit) {
    __m128 level_sums = _mm_setzero_ps();
    __m128 square_sums = _mm_setzero_ps();
    __m128 weight_sums = _mm_setzero_ps();
    __m128 product_sums = _mm_setzero_ps();
    for (int i = 0; i < kGroup; i += 4) {
        const __m128 level = _mm_loadu_ps(fit.levels + i);
        const __m128 weight = _mm_loadu_ps(weights + i);
        level_sums = _mm_add_ps(level_sums, level);
        square_sums = _mm_add_ps(square_sums, _mm_mul_ps(level, level));
        weight_sums = _mm_add_ps(weight_sums, weight);
        product_sums = _mm_add_ps(product_sums, _mm_mul_ps(level, weight));
    }
    const float level_sum = sum_of(level_sums);
    const float weight_sum = sum_of(weight_sums);
    const float determinant = kGroup * sum_of(square_sums) - level_sum * level_sum;
    if (determinant <= 0.0F) return fit;
    const float scale = (kGroup * sum_of(product_sums) - level_sum * weight_sum) / determinant;
    const float minimum = (weight_sum - scale * level_sum) / kGroup;
    return scale > 0.0F ? fit_levels(weights, scale, minimum) : fit;
}

struct Range {
    float low;
    float high;
};

Range range_of(const float* weights) {
    __m128 low = _mm_loadu_ps(weights);
    __m128 high = low;
    for (int i = 4; i < kGroup; i += 4) {
        low = _mm_min_ps(low, _mm_loadu_ps(weights + i));
        high = _mm_max_ps(high, _mm_loadu_ps(weights + i));
    }
    float lows[4];
    float highs[4];
    _mm_storeu_ps(lows, low);
    _mm_storeu_ps(highs, high);
    return {std::min({lows[0], lows[1], lows[2], lows[3]}), std::max({highs[0], highs[1], highs[2], highs[3]})};
}

}  // namespace

std::optional<Q8Group> quantise_q8(const float* weights) {
    const auto [low, high] = range_of(weights);
    const float amax = std::max(-low, high);
    Q8Group result;
    result.scale = f32_to_f16(amax / kQ8Levels);
    if (!is_finite_f16(result.scale)) return std::nullopt;
    const float scale = f16_to_f32(result.scale);
    if (scale == 0.0F) return result;
    for (int i = 0; i < kGroup; i += 4) {
        const __m128 raw = _mm_div_ps(_mm_loadu_ps(weights + i), _mm_set1_ps(scale));
        float levels[4];
        _mm_storeu_ps(levels, round_nearest_even(clamp(raw, -kQ8Levels, kQ8Levels)));
        for (int j = 0; j < 4; ++j) result.quants[i + j] = static_cast<std::int8_t>(levels[j]);
    }
    return result;
}

std::optional<Q4Group> quantise_q4(const float* weights) {
    const auto [low, high] = range_of(weights);
    const float range = high - low;
    Q4Group result;
    if (!is_finite_f16(f32_to_f16(range / kQ4Levels)) || !is_finite_f16(f32_to_f16(low))) return std::nullopt;
    Q4Fit best = fit_levels(weights, range / kQ4Levels, low);
    for (const float fraction : kRangeFractions) {
        if (best.squared_error == 0.0F) break;
        const float clipped = 0.5F * (1.0F - fraction) * range;
        const Q4Fit start = fit_levels(weights, fraction * range / kQ4Levels, low + clipped);
        const Q4Fit fitted = refit(weights, start);
        if (fitted.squared_error < best.squared_error) best = fitted;
    }
    result.scale = f32_to_f16(best.scale);
    result.minimum = f32_to_f16(best.minimum);
    for (int i = 0; i < kGroup; ++i) result.quants[i] = static_cast<std::uint8_t>(best.levels[i]);
    return result;
}

}  // namespace ninfer
