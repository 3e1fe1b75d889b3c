#pragma once

// Paged KV memory for op tests: one layer, several sequences, scrambled page tables, and garbage wherever nothing was
// written: all bytes are 0xFF, which is NaN as f32 and bf16.

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "cpp/ops/kv_segment.h"

namespace ninfer::testing_support {

class PagedCache {
   public:
    enum class Plane { kKeys, kValues };

    // A pool for sequences of the given token capacities, plus three pages that nobody owns.
    PagedCache(KvLayerLayout layout, const std::vector<std::int64_t>& capacities, std::uint64_t seed)
        : layout_(layout) {
        std::int64_t pages = 3;
        for (const auto tokens : capacities) pages += page_count(tokens);
        std::vector<std::int32_t> order(static_cast<std::size_t>(pages));
        std::iota(order.begin(), order.end(), 0);
        std::mt19937_64 engine(seed);
        std::shuffle(order.begin(), order.end(), engine);
        auto next = order.begin();
        for (const auto tokens : capacities) {
            tables_.emplace_back(next, next + page_count(tokens));
            next += page_count(tokens);
        }
        // A stride larger than the layer's part, as in a pool of page groups.
        stride_ = layout.layer_bytes() + 192;
        pool_.assign(static_cast<std::size_t>(pages) * stride_ / sizeof(float), kGarbage);
    }

    static std::int64_t page_count(std::int64_t tokens) { return (tokens + kPageTokens - 1) / kPageTokens; }
    const KvLayerLayout& layout() const { return layout_; }

    PagedKvView view(std::size_t sequence) {
        auto& table = tables_[sequence];
        return {layout_, bytes(), stride_, table.data(), static_cast<std::int64_t>(table.size())};
    }

    // The element and its scale (1 for f32 and bf16), read as the layout says.
    double quant(std::size_t sequence, Plane plane, std::int64_t position, std::int64_t head, std::int64_t feature) {
        const std::byte* p = element(sequence, plane, position, head, feature);
        switch (layout_.storage) {
            case KvStorage::kF32:
                return read<float>(p);
            case KvStorage::kBf16:
                return read_bf16(p);
            case KvStorage::kInt8:
                return read<std::int8_t>(p);
        }
        return NAN;
    }
    double scale(std::size_t sequence, Plane plane, std::int64_t position, std::int64_t head, std::int64_t feature) {
        if (layout_.storage != KvStorage::kInt8) return 1.0;
        return read<float>(scale_element(sequence, plane, position, head, feature));
    }
    double value(std::size_t sequence, Plane plane, std::int64_t position, std::int64_t head, std::int64_t feature) {
        return quant(sequence, plane, position, head, feature) * scale(sequence, plane, position, head, feature);
    }

    // Fills a token's keys and values with values drawn from the generator, whatever they quantise to.
    template <typename Generator>
    void write_token(std::size_t sequence, std::int64_t position, Generator&& next) {
        for (const auto plane : {Plane::kKeys, Plane::kValues})
            for (std::int64_t h = 0; h < layout_.kv_heads; ++h)
                for (std::int64_t d = 0; d < layout_.head_dim; ++d)
                    write(sequence, plane, position, h, d, static_cast<float>(next()));
    }

    // Puts the garbage back where a token's keys and values are.
    void erase_token(std::size_t sequence, std::int64_t position) {
        for (const auto plane : {Plane::kKeys, Plane::kValues})
            for (std::int64_t h = 0; h < layout_.kv_heads; ++h)
                for (std::int64_t d = 0; d < layout_.head_dim; ++d) {
                    std::memset(element(sequence, plane, position, h, d), 0xFF, layout_.element_bytes());
                    if (layout_.storage == KvStorage::kInt8)
                        std::memset(scale_element(sequence, plane, position, h, d), 0xFF, sizeof(float));
                }
    }
    bool all_garbage() const {
        const auto* begin = reinterpret_cast<const unsigned char*>(pool_.data());
        return std::all_of(begin, begin + pool_.size() * sizeof(float), [](unsigned char b) { return b == 0xFF; });
    }
    bool equal_bits(const PagedCache& other) const {
        return pool_.size() == other.pool_.size() &&
               std::memcmp(pool_.data(), other.pool_.data(), pool_.size() * sizeof(float)) == 0;
    }

   private:
    std::byte* bytes() { return reinterpret_cast<std::byte*>(pool_.data()); }
    std::byte* page(std::size_t sequence, std::int64_t position) {
        return bytes() +
               static_cast<std::size_t>(tables_[sequence][static_cast<std::size_t>(position / kPageTokens)]) * stride_;
    }
    std::byte* element(std::size_t sequence, Plane plane, std::int64_t position, std::int64_t head,
                       std::int64_t feature) {
        const std::int64_t slot = position % kPageTokens;
        const std::int64_t keys = head * layout_.head_dim * kPageTokens + feature * kPageTokens + slot;
        const std::int64_t values = ((layout_.kv_heads + head) * kPageTokens + slot) * layout_.head_dim + feature;
        return page(sequence, position) +
               static_cast<std::size_t>(plane == Plane::kKeys ? keys : values) * layout_.element_bytes();
    }
    std::byte* scale_element(std::size_t sequence, Plane plane, std::int64_t position, std::int64_t head,
                             std::int64_t feature) {
        const std::int64_t slot = position % kPageTokens;
        const std::int64_t blocks = (layout_.head_dim + 63) / 64;
        const std::int64_t keys = (head * blocks + feature / 64) * kPageTokens + slot;
        const std::int64_t values = ((layout_.kv_heads + head) * kPageTokens + slot) * blocks + feature / 64;
        const std::int64_t planes = 2 * layout_.kv_heads * layout_.head_dim * kPageTokens;
        return page(sequence, position) + planes +
               (plane == Plane::kKeys ? keys : values) * std::int64_t{sizeof(float)};
    }
    void write(std::size_t sequence, Plane plane, std::int64_t position, std::int64_t head, std::int64_t feature,
               float value) {
        std::byte* p = element(sequence, plane, position, head, feature);
        switch (layout_.storage) {
            case KvStorage::kF32:
                std::memcpy(p, &value, sizeof(value));
                return;
            case KvStorage::kBf16:
                // The upper half is some bfloat16 near the value, which is all that is needed.
                std::memcpy(p, reinterpret_cast<const std::byte*>(&value) + 2, 2);
                return;
            case KvStorage::kInt8: {
                const auto quant = static_cast<std::int8_t>(std::clamp(value * 40.0F, -127.0F, 127.0F));
                const float scale = 0.02F + 0.01F * std::abs(value);
                std::memcpy(p, &quant, sizeof(quant));
                if (feature % 64 == 0)
                    std::memcpy(scale_element(sequence, plane, position, head, feature), &scale, sizeof(scale));
                return;
            }
        }
    }
    template <typename T>
    static T read(const std::byte* p) {
        T result;
        std::memcpy(&result, p, sizeof(T));
        return result;
    }
    static float read_bf16(const std::byte* p) {
        const std::uint32_t bits = std::uint32_t{read<std::uint16_t>(p)} << 16;
        float result;
        std::memcpy(&result, &bits, sizeof(result));
        return result;
    }

    inline static const float kGarbage = [] {
        float result;
        std::memset(&result, 0xFF, sizeof(result));
        return result;
    }();
    KvLayerLayout layout_;
    std::size_t stride_ = 0;
    std::vector<float> pool_;
    std::vector<std::vector<std::int32_t>> tables_;
};

inline constexpr KvStorage kKvStorages[] = {KvStorage::kF32, KvStorage::kBf16, KvStorage::kInt8};

}  // namespace ninfer::testing_support
