#include "cpp/model/decoder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace ninfer {

// The memory of one unit. Activations live in scratch for the whole unit; `context` serves ops below them.
struct Decoder::Workspace {
    OpContext& context;
    const OpTable& ops;
    std::int64_t rows;
    std::span<const SequenceRows> sequences;
    KvPoolView kv_pool;
    std::array<RowSegment, kMaxSequences> segments;
    MatrixView residual;  // [rows, hidden]
    MatrixView normed;    // [rows, hidden]
    MatrixView mixed;     // [rows, hidden]: what a mixer or MLP adds to the residual
    float* cosines;
    float* sines;
};

namespace {

MatrixView take_matrix(ScratchArena& scratch, std::int64_t rows, std::int64_t columns) {
    return {scratch.take<float>(rows * columns), rows, columns, columns};
}

std::int64_t matrix_bytes(std::int64_t rows, std::int64_t columns) {
    constexpr std::int64_t kAlignment = 64;
    return (rows * columns * static_cast<std::int64_t>(sizeof(float)) + kAlignment - 1) / kAlignment * kAlignment;
}

std::size_t largest_linear_scratch(std::int64_t rows, std::int64_t in_features) {
    std::size_t largest = 0;
    for (const auto storage : {WeightStorage::kF32, WeightStorage::kBf16, WeightStorage::kQ8, WeightStorage::kQ4})
        largest = std::max(largest, linear_scratch_bytes(rows, in_features, storage));
    return largest;
}

}  // namespace

Decoder::Decoder(DecoderSpec spec, KvStorage kv_storage) : spec_(std::move(spec)) {
    const auto is_recurrent = [](const LayerWeights& layer) {
        return std::holds_alternative<DeltaNetWeights>(layer.mixer);
    };
    const auto recurrent_layers = std::count_if(spec_.layers.begin(), spec_.layers.end(), is_recurrent);
    state_layout_ = {spec_.recurrent, recurrent_layers};
    page_layout_ = {{kv_storage, spec_.attention.kv_heads, spec_.attention.head_dim},
                    static_cast<std::int64_t>(spec_.layers.size()) - recurrent_layers};
    NINFER_ASSERT_EQ(spec_.attention.heads % std::max<std::int64_t>(spec_.attention.kv_heads, 1), 0);
}

std::size_t Decoder::scratch_bytes(std::int64_t rows, int threads) const {
    const auto& attention = spec_.attention;
    const std::int64_t kv_columns = attention.kv_heads * attention.head_dim;
    const std::int64_t fixed = 3 * matrix_bytes(rows, spec_.hidden_size) + 2 * matrix_bytes(rows, attention.rotary_dim);
    const std::int64_t attention_bytes = matrix_bytes(rows, attention.heads * attention.query_head_stride) +
                                         2 * matrix_bytes(rows, kv_columns) +
                                         matrix_bytes(rows, attention.heads * attention.head_dim);
    const auto& recurrent = spec_.recurrent;
    const std::int64_t value_columns = recurrent.value_heads * recurrent.value_dim;
    const std::int64_t delta_bytes = 2 * matrix_bytes(rows, recurrent.conv_channels()) +
                                     2 * matrix_bytes(rows, value_columns) +
                                     2 * matrix_bytes(rows, recurrent.value_heads);
    const std::int64_t mlp_bytes = 2 * matrix_bytes(rows, spec_.intermediate_size);
    const std::int64_t widest_input =
        std::max({spec_.hidden_size, spec_.intermediate_size, attention.heads * attention.head_dim, value_columns});
    std::size_t op_bytes = largest_linear_scratch(rows, widest_input);
    op_bytes = std::max(op_bytes, paged_attention_scratch_bytes(threads, attention));
    if (state_layout_.recurrent_layers > 0)
        op_bytes = std::max(op_bytes, gated_delta_rule_scratch_bytes(rows, recurrent));
    return static_cast<std::size_t>(fixed + std::max({attention_bytes, delta_bytes, mlp_bytes})) + op_bytes;
}

void Decoder::run(OpContext& context, const OpTable& ops, const DecoderUnit& unit) const {
    NINFER_ASSERT_LE(static_cast<std::int64_t>(unit.sequences.size()), kMaxSequences);
    const ScratchArena::Scope scope(context.scratch);
    Workspace work{context, ops, 0, unit.sequences, unit.kv_pool, {}, {}, {}, {}, nullptr, nullptr};
    for (std::size_t s = 0; s < unit.sequences.size(); ++s) {
        const auto& sequence = unit.sequences[s];
        const auto count = static_cast<std::int64_t>(sequence.tokens.size());
        NINFER_ASSERT_LE(1, count);
        work.segments[s] = {work.rows, count, sequence.first_position};
        work.rows += count;
    }
    work.residual = take_matrix(context.scratch, work.rows, spec_.hidden_size);
    work.normed = take_matrix(context.scratch, work.rows, spec_.hidden_size);
    work.mixed = take_matrix(context.scratch, work.rows, spec_.hidden_size);
    const std::int64_t half_rotary = spec_.attention.rotary_dim / 2;
    work.cosines = context.scratch.take<float>(work.rows * half_rotary);
    work.sines = context.scratch.take<float>(work.rows * half_rotary);
    fill_rope_table(spec_.rope, work.segments.data(), static_cast<std::int64_t>(unit.sequences.size()), work.cosines,
                    work.sines);
    for (std::size_t s = 0; s < unit.sequences.size(); ++s) {
        const auto& segment = work.segments[s];
        ops.embedding(context, {unit.sequences[s].tokens.data(), segment.row_count, spec_.embedding,
                                work.residual.row_slice(segment.row_begin, segment.row_count)});
    }

    std::int64_t attention_index = 0;
    std::int64_t recurrent_index = 0;
    bool first = true;
    for (const auto& layer : spec_.layers) {
        // The previous layer's MLP output is added to the residual in the same pass as this layer's norm.
        ops.rms_norm(context, {first ? work.residual : work.mixed, first ? MatrixView{} : work.residual,
                               layer.input_norm, spec_.rms_norm_epsilon, work.normed});
        first = false;
        if (const auto* attention = std::get_if<AttentionWeights>(&layer.mixer))
            run_attention(work, *attention, attention_index++);
        else
            run_delta_net(work, std::get<DeltaNetWeights>(layer.mixer), recurrent_index++);
        ops.rms_norm(context,
                     {work.mixed, work.residual, layer.post_attention_norm, spec_.rms_norm_epsilon, work.normed});
        run_mlp(work, layer);
    }
    run_lm_head(work, unit);
}

void Decoder::run_attention(Workspace& work, const AttentionWeights& weights, std::int64_t index) const {
    const ScratchArena::Scope scope(work.context.scratch);
    auto& scratch = work.context.scratch;
    const auto& shape = spec_.attention;
    const MatrixView query = take_matrix(scratch, work.rows, shape.heads * shape.query_head_stride);
    const MatrixView key = take_matrix(scratch, work.rows, shape.kv_heads * shape.head_dim);
    const MatrixView value = take_matrix(scratch, work.rows, shape.kv_heads * shape.head_dim);
    const MatrixView attended = take_matrix(scratch, work.rows, shape.heads * shape.head_dim);
    const std::array<LinearTarget, 3> projections = {
        {{weights.query, query}, {weights.key, key}, {weights.value, value}}};
    work.ops.linear(work.context, {work.normed, projections.data(), std::ssize(projections)});

    std::array<KvSegment, kMaxSequences> segments;
    for (std::size_t s = 0; s < work.sequences.size(); ++s) {
        const auto& table = work.sequences[s].page_table;
        segments[s] = {work.segments[s],
                       {page_layout_.layer, work.kv_pool.data + page_layout_.layer_offset(index),
                        work.kv_pool.stride_bytes, table.data(), std::ssize(table)}};
    }
    const auto segment_count = std::ssize(work.sequences);
    work.ops.norm_rope_append(work.context,
                              {shape, query, key, value, weights.query_norm, weights.key_norm, spec_.rms_norm_epsilon,
                               work.cosines, work.sines, segments.data(), segment_count});
    const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(shape.head_dim)));
    work.ops.paged_attention(work.context, {shape, scale, query, attended, segments.data(), segment_count});
    if (spec_.has_output_gate()) {
        const std::int64_t gate_columns = query.columns - shape.head_dim;
        work.ops.sigmoid_gate(work.context, {attended, query.column_slice(shape.head_dim, gate_columns), shape.heads,
                                             shape.head_dim, shape.query_head_stride});
    }
    const LinearTarget output{weights.output, work.mixed};
    work.ops.linear(work.context, {attended, &output, 1});
}

void Decoder::run_delta_net(Workspace& work, const DeltaNetWeights& weights, std::int64_t index) const {
    const ScratchArena::Scope scope(work.context.scratch);
    auto& scratch = work.context.scratch;
    const auto& layout = spec_.recurrent;
    const std::int64_t value_columns = layout.value_heads * layout.value_dim;
    const MatrixView raw = take_matrix(scratch, work.rows, layout.conv_channels());
    const MatrixView convolved = take_matrix(scratch, work.rows, layout.conv_channels());
    const MatrixView z = take_matrix(scratch, work.rows, value_columns);
    const MatrixView attended = take_matrix(scratch, work.rows, value_columns);
    const MatrixView b = take_matrix(scratch, work.rows, layout.value_heads);
    const MatrixView a = take_matrix(scratch, work.rows, layout.value_heads);
    const std::array<LinearTarget, 4> projections = {
        {{weights.qkv, raw}, {weights.z, z}, {weights.b, b}, {weights.a, a}}};
    work.ops.linear(work.context, {work.normed, projections.data(), std::ssize(projections)});

    std::array<ConvSegment, kMaxSequences> conv_segments;
    std::array<RecurrentSegment, kMaxSequences> state_segments;
    for (std::size_t s = 0; s < work.sequences.size(); ++s) {
        const auto& sequence = work.sequences[s];
        NINFER_ASSERT(sequence.state_read != nullptr && sequence.state_write != nullptr,
                      "a hybrid needs a state image");
        const auto* read = reinterpret_cast<const float*>(sequence.state_read);
        auto* write = reinterpret_cast<float*>(sequence.state_write);
        const auto conv = state_layout_.conv_offset(index) / sizeof(float);
        const auto recurrent = state_layout_.recurrent_offset(index) / sizeof(float);
        conv_segments[s] = {work.segments[s], read + conv, write + conv};
        state_segments[s] = {work.segments[s], {read + recurrent, write + recurrent}};
    }
    const auto segment_count = std::ssize(work.sequences);
    work.ops.causal_conv1d(work.context,
                           {raw, weights.conv, layout.conv_width, convolved, conv_segments.data(), segment_count});
    work.ops.gated_delta_rule(work.context, {layout, convolved, a, b, weights.decay_rate, weights.dt_bias, attended,
                                             state_segments.data(), segment_count});
    work.ops.gated_rms_norm(work.context, {attended, z, weights.norm, spec_.rms_norm_epsilon, layout.value_heads,
                                           layout.value_dim, attended});
    const LinearTarget output{weights.output, work.mixed};
    work.ops.linear(work.context, {attended, &output, 1});
}

void Decoder::run_mlp(Workspace& work, const LayerWeights& layer) const {
    const ScratchArena::Scope scope(work.context.scratch);
    const MatrixView gate = take_matrix(work.context.scratch, work.rows, spec_.intermediate_size);
    const MatrixView up = take_matrix(work.context.scratch, work.rows, spec_.intermediate_size);
    const std::array<LinearTarget, 2> projections = {{{layer.gate, gate}, {layer.up, up}}};
    work.ops.linear(work.context, {work.normed, projections.data(), std::ssize(projections)});
    work.ops.swiglu(work.context, {gate, up, gate});
    const LinearTarget down{layer.down, work.mixed};
    work.ops.linear(work.context, {gate, &down, 1});
}

void Decoder::run_lm_head(Workspace& work, const DecoderUnit& unit) const {
    // Rows whose logits are wanted, compacted to the front: the last layer's output in `mixed` and the residual stream.
    std::int64_t wanted = 0;
    for (std::size_t s = 0; s < work.sequences.size(); ++s) {
        const auto& segment = work.segments[s];
        const auto rows = work.sequences[s].logit_rows;
        const std::int64_t count = rows == LogitRows::kAll ? segment.row_count : rows == LogitRows::kLast ? 1 : 0;
        const std::int64_t begin = segment.row_begin + segment.row_count - count;
        const auto bytes = static_cast<std::size_t>(count * spec_.hidden_size) * sizeof(float);
        if (count > 0 && begin != wanted) {
            std::memmove(work.mixed.row(wanted), work.mixed.row(begin), bytes);
            std::memmove(work.residual.row(wanted), work.residual.row(begin), bytes);
        }
        wanted += count;
    }
    NINFER_ASSERT_EQ(unit.logits.rows, wanted);
    if (wanted == 0) return;
    NINFER_ASSERT_EQ(unit.logits.columns, spec_.vocab_size);
    const MatrixView normed = work.normed.row_slice(0, wanted);
    work.ops.rms_norm(work.context, {work.mixed.row_slice(0, wanted), work.residual.row_slice(0, wanted),
                                     spec_.final_norm, spec_.rms_norm_epsilon, normed});
    const LinearTarget head{spec_.lm_head, unit.logits};
    work.ops.linear(work.context, {normed, &head, 1});
}

}  // namespace ninfer
