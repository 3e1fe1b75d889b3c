// Norm, rotation and paged append of a 0.8B attention layer: 8 heads over 2, dimension 256, bf16 pages.

#include "bench/support/row_op_bench.h"

namespace ninfer {
namespace {

constexpr AttentionShape kShape{8, 2, 256, 64, 512};

// One batch and the pages it is appended to, from position 0.
struct Batch {
    explicit Batch(std::int64_t row_count)
        : rows(row_count),
          query(rows, kShape.heads * kShape.query_head_stride),
          key(rows, kShape.kv_heads * kShape.head_dim),
          value(rows, kShape.kv_heads * kShape.head_dim),
          norms(2, kShape.head_dim),
          angles(2, rows * kShape.rotary_dim / 2),
          layout{KvStorage::kBf16, kShape.kv_heads, kShape.head_dim},
          pages(static_cast<std::size_t>((rows + kPageTokens - 1) / kPageTokens)),
          pool(pages.size() * layout.layer_bytes()) {
        for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = static_cast<std::int32_t>(i);
    }

    void operator()(const OpTable& ops, OpContext& context) {
        const KvSegment segment{{0, rows, 0},
                                {layout, pool.data(), layout.layer_bytes(), pages.data(), std::ssize(pages)}};
        ops.norm_rope_append(
            context, {kShape, query.view(), key.view(), value.view(), norms.view().row(0), norms.view().row(1), 1e-6F,
                      angles.view().row(0), angles.view().row(1), &segment, 1});
    }

    std::int64_t rows;
    bench::RandomMatrix query, key, value, norms, angles;
    KvLayerLayout layout;
    std::vector<std::int32_t> pages;
    std::vector<std::byte> pool;
};

}  // namespace
}  // namespace ninfer

int main(int argc, char** argv) {
    using namespace ninfer;
    // q read and written, k and v read as f32 and written as bf16.
    constexpr std::int64_t kBytes = kShape.heads * kShape.head_dim * 8 + 2 * kShape.kv_heads * kShape.head_dim * 6;
    return bench::bench_row_op(argc, argv, "norm_rope_append, 8/2 heads of 256, bf16 pages", kBytes,
                               [](std::int64_t rows) { return Batch(rows); });
}
