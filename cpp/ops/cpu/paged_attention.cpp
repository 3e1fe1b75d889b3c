#include "cpp/ops/paged_attention.h"

#include "cpp/ops/cpu/attention_tile.h"
#include "cpp/ops/cpu/isa_op_table.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

// From this many queries on, computing takes longer than reading: a page is converted to f32 once instead of inside the
// inner loops, and the next page is left to the hardware's prefetching.
constexpr std::int64_t kWidenQueries = 13;

// How a batch is cut into tiles. Within a segment and kv head the last rows come first: they see the most keys, and the
// short tiles then even out the threads.
struct TilePlan {
    const PagedAttentionArgs& args;
    std::int64_t head_parts;  // of a group too large for one tile
    std::int64_t tile_heads;
    std::int64_t tile_rows;

    NINFER_INLINE std::int64_t row_tiles(const RowSegment& rows) const {
        return (rows.row_count + tile_rows - 1) / tile_rows;
    }
    NINFER_INLINE std::int64_t tiles_per_row_tile() const { return args.shape.kv_heads * head_parts; }
};

TilePlan plan_tiles(const PagedAttentionArgs& args) {
    const std::int64_t group = args.shape.heads / args.shape.kv_heads;
    const std::int64_t parts = (group + kTileQueries - 1) / kTileQueries;
    const std::int64_t heads = (group + parts - 1) / parts;
    return {args, parts, heads, kTileQueries / heads};
}

std::int64_t count_tiles(const TilePlan& plan) {
    std::int64_t count = 0;
    for (std::int64_t s = 0; s < plan.args.segment_count; ++s)
        count += plan.row_tiles(plan.args.segments[s].rows) * plan.tiles_per_row_tile();
    return count;
}

AttentionTile find_tile(const TilePlan& plan, std::int64_t index) {
    const KvSegment* segment = plan.args.segments;
    while (index >= plan.row_tiles(segment->rows) * plan.tiles_per_row_tile()) {
        index -= plan.row_tiles(segment->rows) * plan.tiles_per_row_tile();
        ++segment;
    }
    const RowSegment& rows = segment->rows;
    const std::int64_t row_tiles = plan.row_tiles(rows);
    const std::int64_t begin = (row_tiles - 1 - index % row_tiles) * plan.tile_rows;
    const std::int64_t part = index / row_tiles % plan.head_parts;
    const std::int64_t group = plan.args.shape.heads / plan.args.shape.kv_heads;
    AttentionTile tile;
    tile.segment = segment;
    tile.row = rows.row_begin + begin;
    tile.rows = rows.row_count - begin < plan.tile_rows ? rows.row_count - begin : plan.tile_rows;
    tile.position = rows.first_position + begin;
    tile.kv_head = index / row_tiles / plan.head_parts;
    tile.head = tile.kv_head * group + part * plan.tile_heads;
    tile.heads = group - part * plan.tile_heads < plan.tile_heads ? group - part * plan.tile_heads : plan.tile_heads;
    return tile;
}

// Scaled queries, padded with zeros to whole vectors.
void load_queries(const PagedAttentionArgs& args, const AttentionTile& tile, const TileScratch& scratch) {
    const std::int64_t head_dim = args.shape.head_dim;
    const F32x16 scale = set1(args.scale);
    for (std::int64_t q = 0; q < tile.queries(); ++q) {
        const std::int64_t head = tile.head + q % tile.heads;
        const float* from = args.query.row(tile.row + q / tile.heads) + head * args.shape.query_head_stride;
        float* to = scratch.queries + q * scratch.layout.padded_dim();
        for (std::int64_t d = 0; d < head_dim; d += kLanes)
            store(to + d, mul(load_n(from + d, head_dim - d < kLanes ? head_dim - d : kLanes), scale));
    }
}

void reset(const SoftmaxState& state, std::int64_t queries, std::int64_t stride) {
    for (std::int64_t q = 0; q < queries; ++q) {
        state.maximum[q] = -__builtin_inff();
        state.sum[q] = 0.0F;
    }
    for (std::int64_t i = 0; i < queries * stride; i += kLanes) store(state.accumulators + i, zero());
}

template <typename T>
PagePlanes<T> stored_planes(const AttentionTile& tile, const TileScratch& scratch, std::int64_t page_index) {
    const KvLayerLayout& layout = tile.segment->kv.layout;
    const std::byte* page = tile.segment->kv.page(page_index);
    PagePlanes<T> planes{reinterpret_cast<const T*>(page + layout.keys_offset(tile.kv_head)),
                         nullptr,
                         reinterpret_cast<const T*>(page + layout.values_offset(tile.kv_head)),
                         layout.head_dim,
                         nullptr,
                         page_index * kPageTokens};
    if (tile.queries() < kWidenQueries && page_index < tile.last_position() / kPageTokens) {
        const std::byte* ahead = tile.segment->kv.page(page_index + 1);
        planes.keys_ahead = reinterpret_cast<const T*>(ahead + layout.keys_offset(tile.kv_head));
        planes.values_ahead = reinterpret_cast<const T*>(ahead + layout.values_offset(tile.kv_head));
    }
    if (layout.storage != KvStorage::kInt8) return planes;
    planes.key_scales = reinterpret_cast<const float*>(page + layout.key_scales_offset(tile.kv_head));
    planes.value_scales = scratch.value_scales;
    const float* scales = reinterpret_cast<const float*>(page + layout.value_scales_offset(tile.kv_head));
    const std::int64_t blocks = layout.scale_blocks();
    for (std::int64_t key = 0; key < kPageTokens; ++key)
        for (std::int64_t b = 0; b < blocks; ++b)
            scratch.value_scales[b * kPageTokens + key] = scales[key * blocks + b];
    return planes;
}

template <typename T>
PagePlanes<float> widened_planes(const AttentionTile& tile, const TileScratch& scratch, const PagePlanes<T>& stored) {
    const std::int64_t head_dim = scratch.layout.head_dim;
    const std::int64_t stride = scratch.layout.padded_dim();
    const std::int64_t seen = tile.last_position() - stored.first_key + 1;
    widen_rows(stored.keys, head_dim, kPageTokens, scratch.keys, kPageTokens);
    widen_rows(stored.values, seen < kPageTokens ? seen : kPageTokens, head_dim, scratch.values, stride);
    return {scratch.keys, stored.key_scales, scratch.values, stride, stored.value_scales, stored.first_key};
}

// Pages of one restart, ascending.
template <typename T>
void visit_pages(const AttentionTile& tile, const TileScratch& scratch, std::int64_t restart,
                 const SoftmaxState& state) {
    constexpr std::int64_t kPages = kRestartKeys / kPageTokens;
    const bool whole_vectors = scratch.layout.head_dim % kLanes == 0;
    const bool widen = !whole_vectors || (sizeof(T) < sizeof(float) && tile.queries() >= kWidenQueries);
    const std::int64_t last = tile.last_position() / kPageTokens;
    const std::int64_t end = (restart + 1) * kPages;
    for (std::int64_t page = restart * kPages; page < end && page <= last; ++page) {
        const PagePlanes<T> stored = stored_planes<T>(tile, scratch, page);
        if (widen)
            visit_page(tile, scratch, widened_planes(tile, scratch, stored), state);
        else
            visit_page(tile, scratch, stored, state);
    }
}

// The keys [1024 · restart, 1024 · (restart + 1)) into a fresh state. The queries are loaded.
void run_restart(const AttentionTile& tile, const TileScratch& scratch, std::int64_t restart,
                 const SoftmaxState& state) {
    reset(state, tile.queries(), scratch.layout.padded_dim());
    switch (tile.segment->kv.layout.storage) {
        case KvStorage::kF32:
            return visit_pages<float>(tile, scratch, restart, state);
        case KvStorage::kBf16:
            return visit_pages<std::uint16_t>(tile, scratch, restart, state);
        case KvStorage::kInt8:
            return visit_pages<std::int8_t>(tile, scratch, restart, state);
    }
}

void write_output(const PagedAttentionArgs& args, const AttentionTile& tile, const SoftmaxState& state) {
    const std::int64_t head_dim = args.shape.head_dim;
    const std::int64_t stride = AttentionScratchLayout{head_dim}.padded_dim();
    for (std::int64_t q = 0; q < tile.queries(); ++q) {
        const F32x16 sum = set1(state.sum[q]);
        const float* from = state.accumulators + q * stride;
        float* to = args.output.row(tile.row + q / tile.heads) + (tile.head + q % tile.heads) * head_dim;
        for (std::int64_t d = 0; d < head_dim; d += kLanes)
            store_n(to + d, div(load(from + d), sum), head_dim - d < kLanes ? head_dim - d : kLanes);
    }
}

// All keys of a tile on one thread.
void run_tile(const PagedAttentionArgs& args, const AttentionTile& tile, const TileScratch& scratch) {
    load_queries(args, tile, scratch);
    run_restart(tile, scratch, 0, scratch.total);
    for (std::int64_t restart = 1; restart < tile.restarts(); ++restart) {
        run_restart(tile, scratch, restart, scratch.restart);
        merge_states(scratch.total, scratch.restart, tile.first_query(restart * kRestartKeys), tile.queries(),
                     scratch.layout.padded_dim());
    }
    write_output(args, tile, scratch.total);
}

// One restart of one tile, computed on any thread and merged by the caller.
struct Partial {
    std::int64_t tile;
    std::int64_t restart;
};

// The parts of the scratch: per thread, and the states of tiles and partials of a split batch.
struct AttentionScratch {
    AttentionScratchLayout layout;
    float* threads;
    float* totals;
    float* partial_states;
    Partial* partials;
    std::int64_t partial_capacity;

    NINFER_INLINE TileScratch thread(int index) const {
        return TileScratch::carve(layout, threads + index * layout.thread_floats());
    }
    NINFER_INLINE SoftmaxState total(std::int64_t tile) const {
        return SoftmaxState::carve(totals + tile * layout.state_floats());
    }
    NINFER_INLINE SoftmaxState partial(std::int64_t index) const {
        return SoftmaxState::carve(partial_states + index * layout.state_floats());
    }
};

// Computes partials [0, count) in parallel, then merges each tile's ones left to right: a tile's first restart was
// computed into its total already. Ends with every finished tile's output written.
void run_partials(OpContext& context, const TilePlan& plan, const AttentionScratch& scratch, std::int64_t count) {
    context.pool.parallel_for(count, [&](std::int64_t index, int thread) {
        const Partial partial = scratch.partials[index];
        const AttentionTile tile = find_tile(plan, partial.tile);
        const TileScratch mine = scratch.thread(thread);
        load_queries(plan.args, tile, mine);
        run_restart(tile, mine, partial.restart,
                    partial.restart == 0 ? scratch.total(partial.tile) : scratch.partial(index));
    });
    if (count == 0) return;
    const std::int64_t first_tile = scratch.partials[0].tile;
    context.pool.parallel_for(scratch.partials[count - 1].tile - first_tile + 1, [&](std::int64_t offset, int) {
        const std::int64_t index = first_tile + offset;
        const AttentionTile tile = find_tile(plan, index);
        for (std::int64_t i = 0; i < count; ++i) {
            const Partial partial = scratch.partials[i];
            if (partial.tile != index) continue;
            if (partial.restart > 0)
                merge_states(scratch.total(index), scratch.partial(i), tile.first_query(partial.restart * kRestartKeys),
                             tile.queries(), scratch.layout.padded_dim());
            if (partial.restart + 1 == tile.restarts()) write_output(plan.args, tile, scratch.total(index));
        }
    });
}

// Few tiles with many keys (decode): their restarts are the tasks, in waves of as many as the scratch holds.
void run_split(OpContext& context, const TilePlan& plan, std::int64_t tiles, const AttentionScratch& scratch) {
    std::int64_t waiting = 0;
    for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t restarts = find_tile(plan, t).restarts();
        for (std::int64_t restart = 0; restart < restarts; ++restart) {
            scratch.partials[waiting++] = {t, restart};
            if (waiting < scratch.partial_capacity) continue;
            run_partials(context, plan, scratch, waiting);
            waiting = 0;
        }
    }
    run_partials(context, plan, scratch, waiting);
}

void check(const PagedAttentionArgs& args) {
    const AttentionShape& shape = args.shape;
    NINFER_ASSERT_EQ(shape.heads % shape.kv_heads, 0);
    NINFER_ASSERT_EQ(args.output.columns, shape.heads * shape.head_dim);
    NINFER_ASSERT_EQ(args.output.rows, args.query.rows);
    NINFER_ASSERT_LE((shape.heads - 1) * shape.query_head_stride + shape.head_dim, args.query.columns);
    for (std::int64_t s = 0; s < args.segment_count; ++s) {
        const KvSegment& segment = args.segments[s];
        NINFER_ASSERT_EQ(segment.kv.layout.head_dim, shape.head_dim);
        NINFER_ASSERT_EQ(segment.kv.layout.kv_heads, shape.kv_heads);
        NINFER_ASSERT_LE(segment.rows.row_begin + segment.rows.row_count, args.query.rows);
    }
}

}  // namespace

void paged_attention(OpContext& context, const PagedAttentionArgs& args) {
    check(args);
    const std::int64_t threads = context.pool.thread_count();
    const TilePlan plan = plan_tiles(args);
    const std::int64_t tiles = count_tiles(plan);
    const ScratchArena::Scope scope(context.scratch);
    AttentionScratch scratch{{args.shape.head_dim}, nullptr, nullptr, nullptr, nullptr, threads * kPartialsPerThread};
    scratch.threads = context.scratch.take<float>(threads * scratch.layout.thread_floats());
    if (threads > 1 && tiles < threads * kSplitTilesPerThread) {
        scratch.totals = context.scratch.take<float>(tiles * scratch.layout.state_floats());
        scratch.partial_states = context.scratch.take<float>(scratch.partial_capacity * scratch.layout.state_floats());
        scratch.partials = context.scratch.take<Partial>(scratch.partial_capacity);
        return run_split(context, plan, tiles, scratch);
    }
    context.pool.parallel_for(
        tiles, [&](std::int64_t index, int thread) { run_tile(args, find_tile(plan, index), scratch.thread(thread)); });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
