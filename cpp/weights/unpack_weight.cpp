#include "cpp/weights/unpack_weight.h"

#include "cpp/base/assert.h"
#include "cpp/weights/float16.h"

namespace ninfer {

namespace {

float unpack_element(const WeightView& weight, const std::byte* panel, std::int64_t lane, std::int64_t i) {
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(panel);
    const auto* const scales = reinterpret_cast<const std::uint16_t*>(panel + weight.quant_bytes());
    const std::int64_t group = i / kQuantGroup;
    const std::int64_t in_group = i % kQuantGroup;
    switch (weight.storage) {
        case WeightStorage::kF32:
            return reinterpret_cast<const float*>(panel)[i * kPanelOutputs + lane];
        case WeightStorage::kBf16:
            return bf16_to_f32(halves[(i / 2 * kPanelOutputs + lane) * 2 + i % 2]);
        case WeightStorage::kQ8: {
            const auto* const quants = reinterpret_cast<const std::int8_t*>(panel);
            const std::int8_t q = quants[(i / 4 * kPanelOutputs + lane) * 4 + i % 4];
            return f16_to_f32(scales[group * kPanelOutputs + lane]) * static_cast<float>(q);
        }
        case WeightStorage::kQ4: {
            const auto* const quants = reinterpret_cast<const std::uint8_t*>(panel);
            const std::int64_t byte = group * 16 + in_group % 16;
            const std::uint8_t both = quants[(byte / 4 * kPanelOutputs + lane) * 4 + byte % 4];
            const int q = in_group < 16 ? both & 0xF : both >> 4;
            // An f16 times a 4-bit integer is exact in f32, so this rounds once.
            return f16_to_f32(scales[2 * group * kPanelOutputs + lane]) * static_cast<float>(q) +
                   f16_to_f32(scales[(2 * group + 1) * kPanelOutputs + lane]);
        }
    }
    NINFER_ASSERT(false, "unknown weight storage");
}

}  // namespace

void unpack_weight(const WeightView& weight, float* output) {
    for (std::int64_t o = 0; o < weight.out_features; ++o)
        for (std::int64_t i = 0; i < weight.in_features; ++i)
            *output++ = unpack_element(weight, weight.panel(o / kPanelOutputs), o % kPanelOutputs, i);
}

}  // namespace ninfer
