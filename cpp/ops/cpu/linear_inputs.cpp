#include "cpp/ops/cpu/linear_inputs.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

constexpr float kLevels = 127.0F;

NINFER_INLINE F32x16 magnitude(F32x16 x) { return max(x, sub(zero(), x)); }

NINFER_INLINE void quantise_group(F32x16 low, F32x16 high, QuantisedGroup& output) {
    output.scale = reduce_max(max(magnitude(low), magnitude(high))) / kLevels;
    F32x16 levels[2] = {zero(), zero()};
    if (output.scale > 0.0F) {
        const F32x16 scale = set1(output.scale);
        const F32x16 limit = set1(kLevels);
        const F32x16 negative_limit = set1(-kLevels);
        levels[0] = max(min(round_nearest_even(div(low, scale)), limit), negative_limit);
        levels[1] = max(min(round_nearest_even(div(high, scale)), limit), negative_limit);
    }
    store_i8(output.values, levels[0]);
    store_i8(output.values + kLanes, levels[1]);
    // Sums of 32 integers up to 127 are exact in f32 in any order.
    const float sum = reduce_add(add(levels[0], levels[1]));
    output.scaled_sum = output.scale * sum;
    output.bias = -128 * static_cast<std::int32_t>(sum);
}

}  // namespace

void quantise_row(const float* x, std::int64_t columns, QuantisedGroup* output) {
    constexpr std::int64_t kGroup = 2 * kLanes;
    std::int64_t c = 0;
    for (; c + kGroup <= columns; c += kGroup) quantise_group(load(x + c), load(x + c + kLanes), *output++);
    const std::int64_t left = columns - c;
    if (left > kLanes)
        quantise_group(load(x + c), load_n(x + c + kLanes, left - kLanes), *output);
    else if (left > 0)
        quantise_group(load_n(x + c, left), zero(), *output);
}

void round_row_to_bf16(const float* x, std::int64_t columns, Bf16Input* output) {
    std::int64_t c = 0;
    for (; c + kLanes <= columns; c += kLanes) store_bf16_inputs(output + c, load(x + c), kLanes);
    const std::int64_t left = columns - c;
    // The lane after the last one is zero: the partner of an odd last input.
    if (left > 0) store_bf16_inputs(output + c, load_n(x + c, left), left + left % 2);
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
