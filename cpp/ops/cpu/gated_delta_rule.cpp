#include "cpp/ops/gated_delta_rule.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/simd/math.h"
#include "cpp/ops/cpu/simd/norm.h"

// One pass over the tile per token: the pass that adds token t to the state and reads its output from it also decays
// the new value for token t+1, stores that, and sums k_(t+1)^T S. So a state value is loaded and stored once per token;
// every rounding is the one that separate passes would make.

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

constexpr int kChains = 4;
constexpr std::int64_t kPrefetchRows = 4;
constexpr float kNormEpsilon = 1e-6F;

// Chains that run at once: as many as have registers (2 vectors of 2 sums each).
#if defined(NINFER_ISA_AVX512)
constexpr int kChainsAtOnce = 4;
#else
constexpr int kChainsAtOnce = 1;
#endif

// What a tile task reads per row instead of recomputing it per tile. Head-major: a task streams through its head's
// rows.
struct Prepared {
    float* vectors;  // [key_heads][rows][key, query][key_dim]; queries scaled by 1 / sqrt(key_dim)
    float* scalars;  // [value_heads][rows][decay, beta]
    std::int64_t rows;
};

NINFER_INLINE float inverse_sqrt(float x) {
    float lanes[kLanes];
    store(lanes, div(set1(1.0F), sqrt(set1(x))));
    return lanes[0];
}

// to = from · first · second.
void scale_vector(const float* from, float first, float second, float* to, std::int64_t count) {
    for (std::int64_t c = 0; c < count; ++c) to[c] = from[c] * first * second;
}

void prepare_row(const GatedDeltaRuleArgs& args, const Prepared& prepared, std::int64_t row) {
    const RecurrentStateLayout& layout = args.layout;
    const float dim_scale = inverse_sqrt(static_cast<float>(layout.key_dim));
    for (std::int64_t head = 0; head < layout.key_heads; ++head) {
        const float* q = args.qkv.row(row) + head * layout.key_dim;
        const float* k = q + layout.key_heads * layout.key_dim;
        float* key = prepared.vectors + (head * prepared.rows + row) * 2 * layout.key_dim;
        const float k_factor = inverse_sqrt(sum_of_squares(k, layout.key_dim) + kNormEpsilon);
        const float q_factor = inverse_sqrt(sum_of_squares(q, layout.key_dim) + kNormEpsilon);
        scale_vector(k, k_factor, 1.0F, key, layout.key_dim);
        scale_vector(q, q_factor, dim_scale, key + layout.key_dim, layout.key_dim);
    }
    for (std::int64_t h = 0; h < layout.value_heads; h += kLanes) {
        const std::int64_t n = layout.value_heads - h < kLanes ? layout.value_heads - h : kLanes;
        const F32x16 rate = sub(zero(), load_n(args.decay_rate + h, n));
        const F32x16 time = softplus(add(load_n(args.a.row(row) + h, n), load_n(args.dt_bias + h, n)));
        float decays[kLanes];
        float betas[kLanes];
        store(decays, exp(mul(rate, time)));
        store(betas, sigmoid(load_n(args.b.row(row) + h, n)));
        for (std::int64_t lane = 0; lane < n; ++lane) {
            float* scalars = prepared.scalars + ((h + lane) * prepared.rows + row) * 2;
            scalars[0] = decays[lane];
            scalars[1] = betas[lane];
        }
    }
}

template <int V>
struct Columns {
    F32x16 v[std::size_t{V}];
};

template <int V>
NINFER_INLINE Columns<V> no_columns() {
    Columns<V> result;
    for (int j = 0; j < V; ++j) result.v[j] = zero();
    return result;
}

template <int V>
NINFER_INLINE Columns<V> combine_chains(const Columns<V> (&chains)[kChains]) {
    Columns<V> result;
    for (int j = 0; j < V; ++j)
        result.v[j] = add(add(chains[0].v[j], chains[1].v[j]), add(chains[2].v[j], chains[3].v[j]));
    return result;
}

// Calls step(i, chain) for every key index: each chain ascending, kChainsAtOnce chains side by side.
template <typename Step>
NINFER_INLINE void for_each_key(std::int64_t key_dim, Step step) {
    const std::int64_t whole = key_dim / kChains * kChains;
#pragma GCC unroll 4
    for (int first = 0; first < kChains; first += kChainsAtOnce)
        for (std::int64_t i = 0; i < whole; i += kChains)
#pragma GCC unroll 4
            for (int c = first; c < first + kChainsAtOnce; ++c) step(i + c, c);
    for (std::int64_t i = whole; i < key_dim; ++i) step(i, static_cast<int>(i - whole));
}

// One column tile of V vectors: state [key_dim][16 V].
template <int V>
struct Tile {
    float* state;
    std::int64_t key_dim;

    // The first token's decay: state = read · decay; returns k^T state.
    NINFER_INLINE Columns<V> open(const float* read, const float* k, float decay) const {
        Columns<V> chains[kChains] = {no_columns<V>(), no_columns<V>(), no_columns<V>(), no_columns<V>()};
        const F32x16 factor = set1(decay);
        for_each_key(key_dim, [&](std::int64_t i, int c) __attribute__((always_inline)) {
            const F32x16 key = set1(k[i]);
            for (int j = 0; j < V; ++j) {
                const std::int64_t at = (i * V + j) * kLanes;
                const F32x16 decayed = mul(load(read + at), factor);
                store(state + at, decayed);
                chains[c].v[j] = fma(key, decayed, chains[c].v[j]);
            }
        });
        return combine_chains<V>(chains);
    }

    // Adds k delta^T to the state and returns q^T of it; leaves it decayed for the next token, whose k^T state goes to
    // next_sum.
    NINFER_INLINE Columns<V> advance(const float* k, const float* q, const Columns<V>& delta, const float* next_k,
                                     float next_decay, Columns<V>& next_sum) const {
        Columns<V> outputs[kChains] = {no_columns<V>(), no_columns<V>(), no_columns<V>(), no_columns<V>()};
        Columns<V> sums[kChains] = {no_columns<V>(), no_columns<V>(), no_columns<V>(), no_columns<V>()};
        const F32x16 factor = set1(next_decay);
        for_each_key(key_dim, [&](std::int64_t i, int c) __attribute__((always_inline)) {
            const F32x16 key = set1(k[i]);
            const F32x16 query = set1(q[i]);
            const F32x16 next_key = set1(next_k[i]);
            for (int j = 0; j < V; ++j) {
                const std::int64_t at = (i * V + j) * kLanes;
                const F32x16 updated = fma(key, delta.v[j], load(state + at));
                outputs[c].v[j] = fma(query, updated, outputs[c].v[j]);
                const F32x16 decayed = mul(updated, factor);
                store(state + at, decayed);
                sums[c].v[j] = fma(next_key, decayed, sums[c].v[j]);
            }
        });
        next_sum = combine_chains<V>(sums);
        return combine_chains<V>(outputs);
    }

    // The last token: as advance, but the state is left as it is after the update.
    NINFER_INLINE Columns<V> close(const float* k, const float* q, const Columns<V>& delta) const {
        Columns<V> outputs[kChains] = {no_columns<V>(), no_columns<V>(), no_columns<V>(), no_columns<V>()};
        for_each_key(key_dim, [&](std::int64_t i, int c) __attribute__((always_inline)) {
            const F32x16 key = set1(k[i]);
            const F32x16 query = set1(q[i]);
            for (int j = 0; j < V; ++j) {
                const std::int64_t at = (i * V + j) * kLanes;
                const F32x16 updated = fma(key, delta.v[j], load(state + at));
                store(state + at, updated);
                outputs[c].v[j] = fma(query, updated, outputs[c].v[j]);
            }
        });
        return combine_chains<V>(outputs);
    }
};

struct TileTask {
    const RecurrentSegment* segment;
    std::int64_t head;
    std::int64_t tile;
};

NINFER_INLINE std::int64_t valid_lanes(std::int64_t columns, int vector) {
    const std::int64_t left = columns - vector * kLanes;
    return left < 0 ? 0 : left < kLanes ? left : kLanes;
}

// delta = (v - k^T S) · beta; columns beyond value_dim stay zero.
template <int V>
NINFER_INLINE Columns<V> delta_of(const float* v, std::int64_t columns, const Columns<V>& sum, float beta) {
    Columns<V> result;
    for (int j = 0; j < V; ++j)
        result.v[j] = mul(sub(load_n(v + j * kLanes, valid_lanes(columns, j)), sum.v[j]), set1(beta));
    return result;
}

template <int V>
NINFER_INLINE void store_columns(float* to, std::int64_t columns, const Columns<V>& values) {
    for (int j = 0; j < V; ++j) store_n(to + j * kLanes, values.v[j], valid_lanes(columns, j));
}

template <int V>
void run_tile(const GatedDeltaRuleArgs& args, const Prepared& prepared, const TileTask& task) {
    const RecurrentStateLayout& layout = args.layout;
    const RowSegment& rows = task.segment->rows;
    const std::int64_t key_head = task.head / (layout.value_heads / layout.key_heads);
    const std::int64_t first_column = task.tile * kStateTileColumns;
    const std::int64_t output_offset = task.head * layout.value_dim + first_column;
    const std::int64_t value_offset = 2 * layout.key_heads * layout.key_dim + output_offset;
    const std::int64_t columns = layout.value_dim - first_column;
    const std::int64_t state_offset = task.head * layout.head_floats() + first_column * layout.key_dim;
    const Tile<V> tile{task.segment->state.write + state_offset, layout.key_dim};

    const float* k = prepared.vectors + (key_head * prepared.rows + rows.row_begin) * 2 * layout.key_dim;
    const float* scalars = prepared.scalars + (task.head * prepared.rows + rows.row_begin) * 2;
    Columns<V> sum = tile.open(task.segment->state.read + state_offset, k, scalars[0]);
    for (std::int64_t t = 0; t < rows.row_count; ++t) {
        const float* v = args.qkv.row(rows.row_begin + t) + value_offset;
        const Columns<V> delta = delta_of<V>(v, columns, sum, scalars[1]);
        const float* q = k + layout.key_dim;
        const float* next_k = q + layout.key_dim;
        scalars += 2;
        const bool last = t + 1 == rows.row_count;
        // The values of later rows lie whole rows further on, where no hardware prefetcher looks.
        if (t + kPrefetchRows < rows.row_count)
            for (int j = 0; j < V; ++j) __builtin_prefetch(v + kPrefetchRows * args.qkv.row_stride + j * kLanes);
        const Columns<V> output = last ? tile.close(k, q, delta) : tile.advance(k, q, delta, next_k, scalars[0], sum);
        store_columns<V>(args.output.row(rows.row_begin + t) + output_offset, columns, output);
        k = next_k;
    }
}

// A segment without rows still moves its state.
void copy_tile(const GatedDeltaRuleArgs& args, const TileTask& task) {
    const RecurrentStateLayout& layout = args.layout;
    const std::int64_t offset = task.head * layout.head_floats() + task.tile * kStateTileColumns * layout.key_dim;
    const std::int64_t floats = layout.tile_columns(task.tile) * layout.key_dim;
    for (std::int64_t i = offset; i < offset + floats; ++i) task.segment->state.write[i] = task.segment->state.read[i];
}

void run_task(const GatedDeltaRuleArgs& args, const Prepared& prepared, const TileTask& task) {
    if (task.segment->rows.row_count == 0) return copy_tile(args, task);
    if (args.layout.tile_columns(task.tile) == kStateTileColumns) return run_tile<2>(args, prepared, task);
    return run_tile<1>(args, prepared, task);
}

void check_shapes(const GatedDeltaRuleArgs& args) {
    const RecurrentStateLayout& layout = args.layout;
    NINFER_ASSERT_LT(0, layout.key_heads);
    NINFER_ASSERT_EQ(layout.value_heads % layout.key_heads, 0);
    NINFER_ASSERT_EQ(args.qkv.columns, layout.conv_channels());
    NINFER_ASSERT_EQ(args.a.columns, layout.value_heads);
    NINFER_ASSERT_EQ(args.b.columns, layout.value_heads);
    NINFER_ASSERT_EQ(args.output.columns, layout.value_heads * layout.value_dim);
    NINFER_ASSERT_EQ(args.a.rows, args.qkv.rows);
    NINFER_ASSERT_EQ(args.b.rows, args.qkv.rows);
    NINFER_ASSERT_EQ(args.output.rows, args.qkv.rows);
    for (std::int64_t s = 0; s < args.segment_count; ++s)
        NINFER_ASSERT_LE(args.segments[s].rows.row_begin + args.segments[s].rows.row_count, args.qkv.rows);
}

}  // namespace

void gated_delta_rule(OpContext& context, const GatedDeltaRuleArgs& args) {
    check_shapes(args);
    const RecurrentStateLayout& layout = args.layout;
    const ScratchArena::Scope scope(context.scratch);
    const std::int64_t rows = args.qkv.rows;
    const Prepared prepared{context.scratch.take<float>(2 * rows * layout.key_heads * layout.key_dim),
                            context.scratch.take<float>(2 * rows * layout.value_heads), rows};
    context.pool.parallel_for(rows, [&](std::int64_t row, int) { prepare_row(args, prepared, row); });

    const std::int64_t tiles = layout.tiles();
    const std::int64_t tasks = layout.value_heads * tiles;
    context.pool.parallel_for(args.segment_count * tasks, [&](std::int64_t block, int) {
        const std::int64_t task = block % tasks;
        run_task(args, prepared, {&args.segments[block / tasks], task / tiles, task % tiles});
    });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
