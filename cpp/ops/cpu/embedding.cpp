#include "cpp/ops/embedding.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/simd/vec.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

// One output feature of a panel: a column of the layout, read element by element with the layout's stride.
struct PanelLane {
    const std::byte* panel;
    const std::uint16_t* scales;
    std::int64_t lane;
};

NINFER_INLINE float f16_at(const std::uint16_t* scales, std::int64_t index) {
    // The vector form reads a whole panel's scales, which are always there.
    float lanes[kPanelOutputs];
    store(lanes, load_f16(scales + index / kPanelOutputs * kPanelOutputs));
    return lanes[index % kPanelOutputs];
}

void read_f32(const PanelLane& source, std::int64_t columns, float* output) {
    const auto* const weights = reinterpret_cast<const float*>(source.panel);
    for (std::int64_t i = 0; i < columns; ++i) output[i] = weights[i * kPanelOutputs + source.lane];
}

void read_bf16(const PanelLane& source, std::int64_t columns, float* output) {
    const auto* const weights = reinterpret_cast<const std::uint16_t*>(source.panel);
    for (std::int64_t i = 0; i < columns; ++i) {
        const std::uint32_t bits = weights[(i / 2 * kPanelOutputs + source.lane) * 2 + i % 2];
        output[i] = __builtin_bit_cast(float, bits << 16);
    }
}

void read_q8(const PanelLane& source, std::int64_t columns, float* output) {
    const auto* const quants = reinterpret_cast<const std::int8_t*>(source.panel);
    for (std::int64_t begin = 0; begin < columns; begin += kQuantGroup) {
        const float scale = f16_at(source.scales, begin / kQuantGroup * kPanelOutputs + source.lane);
        const std::int64_t end = begin + kQuantGroup < columns ? begin + kQuantGroup : columns;
        for (std::int64_t i = begin; i < end; ++i) {
            const std::int64_t at = (i / 4 * kPanelOutputs + source.lane) * 4 + i % 4;
            output[i] = scale * static_cast<float>(quants[at]);
        }
    }
}

// scale · q is exact (an f16 times a 4-bit integer), so scale · q + minimum rounds once, as fma does.
void read_q4(const PanelLane& source, std::int64_t columns, float* output) {
    constexpr std::int64_t kHalf = kQuantGroup / 2;
    const auto* const quants = reinterpret_cast<const std::uint8_t*>(source.panel);
    for (std::int64_t begin = 0; begin < columns; begin += kQuantGroup) {
        const std::int64_t scales = 2 * (begin / kQuantGroup) * kPanelOutputs + source.lane;
        const float scale = f16_at(source.scales, scales);
        const float minimum = f16_at(source.scales, scales + kPanelOutputs);
        for (std::int64_t i = 0; i < kQuantGroup && begin + i < columns; ++i) {
            const std::int64_t byte = begin / 2 + i % kHalf;
            const int both = quants[(byte / 4 * kPanelOutputs + source.lane) * 4 + byte % 4];
            output[begin + i] = scale * static_cast<float>(i < kHalf ? both & 0xF : both >> 4) + minimum;
        }
    }
}

void read_row(const WeightView& table, std::int64_t id, float* output) {
    const std::byte* const panel = table.panel(id / kPanelOutputs);
    const auto* const scales = reinterpret_cast<const std::uint16_t*>(panel + table.quant_bytes());
    const PanelLane source = {panel, scales, id % kPanelOutputs};
    switch (table.storage) {
        case WeightStorage::kF32:
            return read_f32(source, table.in_features, output);
        case WeightStorage::kBf16:
            return read_bf16(source, table.in_features, output);
        case WeightStorage::kQ8:
            return read_q8(source, table.in_features, output);
        case WeightStorage::kQ4:
            return read_q4(source, table.in_features, output);
    }
}

}  // namespace

void embedding(OpContext& context, const EmbeddingArgs& args) {
    NINFER_ASSERT_EQ(args.output.rows, args.count);
    NINFER_ASSERT_EQ(args.output.columns, args.table.in_features);
    context.pool.parallel_for(args.count, [&](std::int64_t row, int) {
        NINFER_ASSERT_LE(0, args.ids[row]);
        NINFER_ASSERT_LT(args.ids[row], args.table.out_features);
        read_row(args.table, args.ids[row], args.output.row(row));
    });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
