#pragma once

// Views of the paged KV of one layer (N-6 of docs/design/numerics.md).
//
// A page holds 64 consecutive tokens. One page group covers the planes of all layers; a layer's part of it is, with
// H = kv_heads, D = head_dim, B = ceil(D / 64) scale blocks:
//   keys     [H][D][64]   feature-major
//   values   [H][64][D]   token-major
//   key scales   [H][B][64] f32   (int8 only)
//   value scales [H][64][B] f32   (int8 only)
// Element type f32, bfloat16 or int8. int8 has one scale per token, head, plane and 64 features (value = scale · q,
// scale = amax / 127, round to nearest even), never along tokens. Every plane starts at a multiple of 64 bytes.

#include <cstddef>
#include <cstdint>

#include "cpp/base/assert.h"
#include "cpp/base/inline.h"
#include "cpp/tensor/dtype.h"

namespace ninfer {

inline constexpr std::int64_t kPageTokens = 64;
inline constexpr std::int64_t kKvScaleFeatures = 64;

// Geometry of one layer's part of a page.
struct KvLayerLayout {
    KvStorage storage = KvStorage::kF32;
    std::int64_t kv_heads = 0;
    std::int64_t head_dim = 0;

    NINFER_INLINE std::size_t element_bytes() const noexcept {
        return storage == KvStorage::kF32 ? 4 : storage == KvStorage::kBf16 ? 2 : 1;
    }
    NINFER_INLINE std::int64_t scale_blocks() const noexcept {
        return storage == KvStorage::kInt8 ? (head_dim + kKvScaleFeatures - 1) / kKvScaleFeatures : 0;
    }
    NINFER_INLINE std::size_t head_plane_bytes() const noexcept {
        return static_cast<std::size_t>(head_dim * kPageTokens) * element_bytes();
    }
    NINFER_INLINE std::size_t head_scale_bytes() const noexcept {
        return static_cast<std::size_t>(scale_blocks() * kPageTokens) * sizeof(float);
    }
    NINFER_INLINE std::size_t keys_offset(std::int64_t head) const noexcept {
        return static_cast<std::size_t>(head) * head_plane_bytes();
    }
    NINFER_INLINE std::size_t values_offset(std::int64_t head) const noexcept { return keys_offset(kv_heads + head); }
    NINFER_INLINE std::size_t key_scales_offset(std::int64_t head) const noexcept {
        return keys_offset(2 * kv_heads) + static_cast<std::size_t>(head) * head_scale_bytes();
    }
    NINFER_INLINE std::size_t value_scales_offset(std::int64_t head) const noexcept {
        return key_scales_offset(kv_heads + head);
    }
    NINFER_INLINE std::size_t layer_bytes() const noexcept { return key_scales_offset(2 * kv_heads); }
};

// Base of a pool of page groups: page p of the pool begins at data + p · stride_bytes.
struct KvPoolView {
    std::byte* data = nullptr;
    std::size_t stride_bytes = 0;
};

// One sequence's pages of one layer. Token t lives in page page_table[t / 64], slot t % 64. Token coverage is the
// caller's fact: an op touches only the positions it is told.
struct PagedKvView {
    KvLayerLayout layout;
    std::byte* pool = nullptr;  // first page group, already advanced to this layer's part
    std::size_t page_stride_bytes = 0;
    const std::int32_t* page_table = nullptr;
    std::int64_t page_count = 0;

    NINFER_INLINE std::byte* page(std::int64_t logical_page) const {
        NINFER_ASSERT_LT(logical_page, page_count);
        return pool + static_cast<std::size_t>(page_table[logical_page]) * page_stride_bytes;
    }
};

}  // namespace ninfer
