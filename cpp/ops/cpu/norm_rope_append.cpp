#include "cpp/ops/norm_rope_append.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/simd/norm.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

// One task: the rows of a segment that fall into one page, one kv head of theirs and the query heads it serves. So no
// two tasks write the same plane of a page.
struct AppendTask {
    const KvSegment* segment;
    std::int64_t row_begin;  // of the batch
    std::int64_t row_end;
    std::int64_t position;  // of row_begin
    std::int64_t kv_head;
};

std::int64_t pages_touched(const RowSegment& rows) {
    if (rows.row_count == 0) return 0;
    return (rows.first_position + rows.row_count - 1) / kPageTokens - rows.first_position / kPageTokens + 1;
}

AppendTask find_task(const NormRopeAppendArgs& args, std::int64_t index) {
    const std::int64_t kv_head = index % args.shape.kv_heads;
    std::int64_t page = index / args.shape.kv_heads;
    const KvSegment* segment = args.segments;
    while (page >= pages_touched(segment->rows)) {
        page -= pages_touched(segment->rows);
        ++segment;
    }
    const RowSegment& rows = segment->rows;
    const std::int64_t page_begin = (rows.first_position / kPageTokens + page) * kPageTokens;
    const std::int64_t begin = page_begin > rows.first_position ? page_begin - rows.first_position : 0;
    const std::int64_t end = page_begin + kPageTokens - rows.first_position;
    return {segment, rows.row_begin + begin, rows.row_begin + (end < rows.row_count ? end : rows.row_count),
            rows.first_position + begin, kv_head};
}

void rotate(float* x, const float* cosines, const float* sines, std::int64_t half) {
    for (std::int64_t i = 0; i < half; i += kLanes) {
        const std::int64_t n = half - i < kLanes ? half - i : kLanes;
        const F32x16 c = load_n(cosines + i, n);
        const F32x16 s = load_n(sines + i, n);
        const F32x16 first = load_n(x + i, n);
        const F32x16 second = load_n(x + half + i, n);
        store_n(x + i, fma(first, c, sub(zero(), mul(second, s))), n);
        store_n(x + half + i, fma(second, c, mul(first, s)), n);
    }
}

// norm and rope of one head of one row; output may be input.
void prepare_head(const NormRopeAppendArgs& args, std::int64_t row, const float* norm, const float* input,
                  float* output) {
    const std::int64_t head_dim = args.shape.head_dim;
    const std::int64_t half = args.shape.rotary_dim / 2;
    if (norm != nullptr)
        scale_row(input, inverse_rms(input, head_dim, args.epsilon), norm, output, head_dim);
    else if (input != output)
        for (std::int64_t d = 0; d < head_dim; ++d) output[d] = input[d];
    rotate(output, args.cosines + row * half, args.sines + row * half, half);
}

// Consecutive features of one token are `stride` elements apart in the plane: 64 for keys, 1 for values.
void store_f32(const float* x, std::byte* plane, std::int64_t offset, std::int64_t stride, std::int64_t head_dim) {
    float* target = reinterpret_cast<float*>(plane) + offset;
    for (std::int64_t d = 0; d < head_dim; ++d) target[d * stride] = x[d];
}

void store_bf16_plane(const float* x, std::byte* plane, std::int64_t offset, std::int64_t stride,
                      std::int64_t head_dim) {
    alignas(64) std::uint16_t rounded[kMaxHeadDim];
    for (std::int64_t d = 0; d < head_dim; d += kLanes) {
        const std::int64_t n = head_dim - d < kLanes ? head_dim - d : kLanes;
        store_bf16_n(rounded + d, load_n(x + d, n), n);
    }
    std::uint16_t* target = reinterpret_cast<std::uint16_t*>(plane) + offset;
    for (std::int64_t d = 0; d < head_dim; ++d) target[d * stride] = rounded[d];
}

// Scale of up to 64 features: amax / 127.
float int8_scale(const float* x, std::int64_t count) {
    F32x16 largest = zero();
    for (std::int64_t d = 0; d < count; d += kLanes) {
        const F32x16 v = load_n(x + d, count - d < kLanes ? count - d : kLanes);
        largest = max(largest, max(v, sub(zero(), v)));
    }
    return reduce_max(largest) / 127.0F;
}

// Scales of consecutive blocks of one token are `scale_stride` apart: 64 for keys, 1 for values.
struct Int8Target {
    std::int8_t* quants;
    std::int64_t quant_stride;
    float* scales;
    std::int64_t scale_stride;
};

void store_int8(const float* x, Int8Target target, std::int64_t head_dim) {
    for (std::int64_t begin = 0; begin < head_dim; begin += kKvScaleFeatures) {
        const std::int64_t count = head_dim - begin < kKvScaleFeatures ? head_dim - begin : kKvScaleFeatures;
        const float scale = int8_scale(x + begin, count);
        target.scales[begin / kKvScaleFeatures * target.scale_stride] = scale;
        alignas(64) float quants[kKvScaleFeatures] = {};
        if (scale > 0.0F)
            for (std::int64_t d = 0; d < count; d += kLanes) {
                const F32x16 v = load_n(x + begin + d, count - d < kLanes ? count - d : kLanes);
                store(quants + d, round_nearest_even(div(v, set1(scale))));
            }
        for (std::int64_t d = 0; d < count; ++d)
            target.quants[(begin + d) * target.quant_stride] = static_cast<std::int8_t>(static_cast<int>(quants[d]));
    }
}

void append_row(const NormRopeAppendArgs& args, const AppendTask& task, std::int64_t row) {
    const std::int64_t head_dim = args.shape.head_dim;
    const KvLayerLayout& layout = task.segment->kv.layout;
    const std::int64_t position = task.position + row - task.row_begin;
    const std::int64_t slot = position % kPageTokens;
    std::byte* page = task.segment->kv.page(position / kPageTokens);
    std::byte* keys = page + layout.keys_offset(task.kv_head);
    std::byte* values = page + layout.values_offset(task.kv_head);
    alignas(64) float key[kMaxHeadDim];
    prepare_head(args, row, args.key_norm, args.key.row(row) + task.kv_head * head_dim, key);
    const float* value = args.value.row(row) + task.kv_head * head_dim;
    switch (layout.storage) {
        case KvStorage::kF32:
            store_f32(key, keys, slot, kPageTokens, head_dim);
            store_f32(value, values, slot * head_dim, 1, head_dim);
            return;
        case KvStorage::kBf16:
            store_bf16_plane(key, keys, slot, kPageTokens, head_dim);
            store_bf16_plane(value, values, slot * head_dim, 1, head_dim);
            return;
        case KvStorage::kInt8: {
            float* key_scales = reinterpret_cast<float*>(page + layout.key_scales_offset(task.kv_head)) + slot;
            float* value_scales = reinterpret_cast<float*>(page + layout.value_scales_offset(task.kv_head));
            store_int8(key, {reinterpret_cast<std::int8_t*>(keys) + slot, kPageTokens, key_scales, kPageTokens},
                       head_dim);
            store_int8(value,
                       {reinterpret_cast<std::int8_t*>(values) + slot * head_dim, 1,
                        value_scales + slot * layout.scale_blocks(), 1},
                       head_dim);
            return;
        }
    }
}

void run_task(const NormRopeAppendArgs& args, const AppendTask& task) {
    const AttentionShape& shape = args.shape;
    const std::int64_t group = shape.heads / shape.kv_heads;
    for (std::int64_t row = task.row_begin; row < task.row_end; ++row) {
        for (std::int64_t h = task.kv_head * group; h < (task.kv_head + 1) * group; ++h) {
            float* query = args.query.row(row) + h * shape.query_head_stride;
            prepare_head(args, row, args.query_norm, query, query);
        }
        append_row(args, task, row);
    }
}

}  // namespace

void norm_rope_append(OpContext& context, const NormRopeAppendArgs& args) {
    const AttentionShape& shape = args.shape;
    NINFER_ASSERT_EQ(shape.heads % shape.kv_heads, 0);
    NINFER_ASSERT_LE(shape.head_dim, kMaxHeadDim);
    NINFER_ASSERT_LE(shape.rotary_dim, shape.head_dim);
    NINFER_ASSERT_EQ(shape.rotary_dim % 2, 0);
    NINFER_ASSERT_LE((shape.heads - 1) * shape.query_head_stride + shape.head_dim, args.query.columns);
    NINFER_ASSERT_EQ(args.key.columns, shape.kv_heads * shape.head_dim);
    NINFER_ASSERT_EQ(args.value.columns, shape.kv_heads * shape.head_dim);
    NINFER_ASSERT_EQ(args.key.rows, args.query.rows);
    NINFER_ASSERT_EQ(args.value.rows, args.query.rows);
    std::int64_t pages = 0;
    for (std::int64_t s = 0; s < args.segment_count; ++s) {
        const KvSegment& segment = args.segments[s];
        NINFER_ASSERT_EQ(segment.kv.layout.head_dim, shape.head_dim);
        NINFER_ASSERT_EQ(segment.kv.layout.kv_heads, shape.kv_heads);
        NINFER_ASSERT_LE(0, segment.rows.first_position);
        NINFER_ASSERT_LE(segment.rows.row_begin + segment.rows.row_count, args.query.rows);
        pages += pages_touched(segment.rows);
    }
    context.pool.parallel_for(pages * shape.kv_heads,
                              [&](std::int64_t index, int) { run_task(args, find_task(args, index)); });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
