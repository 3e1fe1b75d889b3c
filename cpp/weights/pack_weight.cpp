#include "cpp/weights/pack_weight.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "cpp/weights/float16.h"
#include "cpp/weights/quantise_group.h"

namespace ninfer {

namespace {

constexpr std::int64_t kNothingRefused = std::numeric_limits<std::int64_t>::max();
constexpr int kHalfGroup = static_cast<int>(kQuantGroup) / 2;

// One tensor on its way into panels. Every (panel, group of 32 inputs) is independent of the others.
class PanelPacker {
   public:
    PanelPacker(const PackSource& source, const WeightView& view, std::byte* destination)
        : source_(source),
          view_(view),
          destination_(destination),
          quant_bytes_(view.quant_bytes()),
          panel_bytes_(view.panel_bytes()) {}

    void pack_panel(std::int64_t panel) {
        std::byte* const begin = destination_ + static_cast<std::size_t>(panel) * panel_bytes_;
        clear_padding(begin);
        const std::int64_t groups = (source_.in_features + kQuantGroup - 1) / kQuantGroup;
        for (std::int64_t group = 0; group < groups; ++group)
            for (std::int64_t lane = 0; lane < kPanelOutputs; ++lane) pack_lane(begin, panel, group, lane);
    }

    // Row-major index of the first refused weight, or kNothingRefused.
    std::int64_t first_refused() const { return first_refused_.load(std::memory_order_relaxed); }

   private:
    // The bytes between the last scale and the next panel.
    void clear_padding(std::byte* panel) const {
        const auto groups = static_cast<std::size_t>(view_.padded_in_features() / kQuantGroup);
        const std::size_t scales = view_.storage == WeightStorage::kQ8   ? groups * kPanelOutputs * 2
                                   : view_.storage == WeightStorage::kQ4 ? groups * kPanelOutputs * 4
                                                                         : 0;
        const std::size_t used = quant_bytes_ + scales;
        std::memset(panel + used, 0, panel_bytes_ - used);
    }

    void pack_lane(std::byte* panel, std::int64_t panel_index, std::int64_t group, std::int64_t lane) {
        const std::int64_t out_feature = panel_index * kPanelOutputs + lane;
        const bool padding = out_feature >= source_.out_features;
        if (!padding && is_block_encoding(source_.encoding) && copy_block(panel, out_feature, group, lane)) return;
        float weights[kQuantGroup] = {};
        if (!padding) {
            decode_group(source_, out_feature, group, weights);
            for (int i = 0; i < kQuantGroup; ++i)
                if (!is_finite(weights[i])) {
                    refuse(out_feature, group * kQuantGroup + i);
                    return;
                }
        }
        if (!store_group(panel, group, lane, weights)) {
            const float* const largest = std::max_element(weights, weights + kQuantGroup,
                                                          [](float a, float b) { return std::abs(a) < std::abs(b); });
            refuse(out_feature, group * kQuantGroup + (largest - weights));
        }
    }

    // Moves the file's integers and scales unchanged where the storage can hold them; false where it cannot.
    bool copy_block(std::byte* panel, std::int64_t out_feature, std::int64_t group, std::int64_t lane) const {
        const EncodedBlock block = encoded_block(source_, out_feature, group);
        if (!is_finite_f16(block.scale) || !is_finite_f16(block.minimum)) return false;
        if (view_.storage == WeightStorage::kQ8 && source_.encoding != FileEncoding::kQ4_1) {
            Q8Group copy{.scale = block.scale};
            for (int i = 0; i < kQuantGroup; ++i)
                copy.quants[i] = static_cast<std::int8_t>(
                    source_.encoding == FileEncoding::kQ8_0 ? block.quants[i] : nibble(block, i) - 8);
            store_q8(panel, group, lane, copy);
            return true;
        }
        if (view_.storage != WeightStorage::kQ4 || source_.encoding == FileEncoding::kQ8_0) return false;
        Q4Group copy{.scale = block.scale, .minimum = block.minimum};
        // -8 · scale only moves the exponent; a scale of 8192 or more would overflow and is requantised.
        if (source_.encoding == FileEncoding::kQ4_0) copy.minimum = f32_to_f16(-8.0F * f16_to_f32(block.scale));
        if (!is_finite_f16(copy.minimum)) return false;
        for (int i = 0; i < kQuantGroup; ++i) copy.quants[i] = nibble(block, i);
        store_q4(panel, group, lane, copy);
        return true;
    }

    static std::uint8_t nibble(const EncodedBlock& block, int i) {
        return static_cast<std::uint8_t>(i < kHalfGroup ? block.quants[i] & 0xF : block.quants[i - kHalfGroup] >> 4);
    }

    // False if a weight is too large for the storage.
    bool store_group(std::byte* panel, std::int64_t group, std::int64_t lane, const float* weights) const {
        switch (view_.storage) {
            case WeightStorage::kF32:
                store_f32(panel, group, lane, weights);
                return true;
            case WeightStorage::kBf16:
                return store_bf16(panel, group, lane, weights);
            case WeightStorage::kQ8: {
                const std::optional<Q8Group> quantised = quantise_q8(weights);
                if (quantised) store_q8(panel, group, lane, *quantised);
                return quantised.has_value();
            }
            case WeightStorage::kQ4: {
                const std::optional<Q4Group> quantised = quantise_q4(weights);
                if (quantised) store_q4(panel, group, lane, *quantised);
                return quantised.has_value();
            }
        }
        NINFER_ASSERT(false, "unknown weight storage");
    }

    // Inputs of this group that the storage holds, its own padding included.
    std::int64_t stored_inputs(std::int64_t group) const {
        return std::min(kQuantGroup, view_.padded_in_features() - group * kQuantGroup);
    }

    void store_f32(std::byte* panel, std::int64_t group, std::int64_t lane, const float* weights) const {
        auto* const out = reinterpret_cast<float*>(panel) + group * kQuantGroup * kPanelOutputs + lane;
        for (std::int64_t i = 0; i < stored_inputs(group); ++i) out[i * kPanelOutputs] = weights[i];
    }

    bool store_bf16(std::byte* panel, std::int64_t group, std::int64_t lane, const float* weights) const {
        auto* const out = reinterpret_cast<std::uint16_t*>(panel) + group * kQuantGroup * kPanelOutputs + 2 * lane;
        bool fits = true;
        for (std::int64_t i = 0; i < stored_inputs(group); ++i) {
            const std::uint16_t bits = f32_to_bf16(weights[i]);
            fits = fits && is_finite(bf16_to_f32(bits));
            out[i / 2 * 2 * kPanelOutputs + i % 2] = bits;
        }
        return fits;
    }

    void store_q8(std::byte* panel, std::int64_t group, std::int64_t lane, const Q8Group& quantised) const {
        std::byte* const out = panel + (group * kQuantGroup * kPanelOutputs) + 4 * lane;
        for (int j = 0; j < kQuantGroup / 4; ++j) std::memcpy(out + j * 4 * kPanelOutputs, quantised.quants + 4 * j, 4);
        auto* const scales = reinterpret_cast<std::uint16_t*>(panel + quant_bytes_);
        scales[group * kPanelOutputs + lane] = quantised.scale;
    }

    void store_q4(std::byte* panel, std::int64_t group, std::int64_t lane, const Q4Group& quantised) const {
        std::byte* const out = panel + (group * kHalfGroup * kPanelOutputs) + 4 * lane;
        for (int i = 0; i < kHalfGroup; ++i) {
            const int both = quantised.quants[i] | (quantised.quants[i + kHalfGroup] << 4);
            out[i / 4 * 4 * kPanelOutputs + i % 4] = static_cast<std::byte>(both);
        }
        auto* const scales = reinterpret_cast<std::uint16_t*>(panel + quant_bytes_);
        scales[2 * group * kPanelOutputs + lane] = quantised.scale;
        scales[(2 * group + 1) * kPanelOutputs + lane] = quantised.minimum;
    }

    void refuse(std::int64_t out_feature, std::int64_t in_feature) {
        const std::int64_t index = out_feature * source_.in_features + in_feature;
        std::int64_t seen = first_refused_.load(std::memory_order_relaxed);
        while (index < seen && !first_refused_.compare_exchange_weak(seen, index, std::memory_order_relaxed)) {
        }
    }

    PackSource source_;
    WeightView view_;
    std::byte* destination_;
    std::size_t quant_bytes_;
    std::size_t panel_bytes_;
    std::atomic<std::int64_t> first_refused_{kNothingRefused};
};

PackRefusal describe(const PackSource& source, WeightStorage storage, std::int64_t index) {
    const std::int64_t out_feature = index / source.in_features;
    const std::int64_t in_feature = index % source.in_features;
    float weights[kQuantGroup];
    decode_group(source, out_feature, in_feature / kQuantGroup, weights);
    const float weight = weights[in_feature % kQuantGroup];
    const std::string text = std::to_string(weight);
    const std::string reason = is_finite(weight) ? text + " is too large for " + std::string(to_string(storage))
                                                 : text + " is not a finite weight";
    return {out_feature, in_feature, reason};
}

}  // namespace

std::size_t packed_weight_bytes(std::int64_t out_features, std::int64_t in_features, WeightStorage storage) {
    return WeightView{nullptr, storage, out_features, in_features}.total_bytes();
}

Result<WeightView, PackRefusal> pack_weight(ThreadPool& pool, const PackSource& source, WeightStorage storage,
                                            std::byte* destination) {
    NINFER_ASSERT_EQ(reinterpret_cast<std::uintptr_t>(destination) % 64, 0);
    NINFER_ASSERT_LE(1, source.in_features);
    const WeightView view{destination, storage, source.out_features, source.in_features};
    PanelPacker packer(source, view, destination);
    pool.parallel_for(view.panels(), [&](std::int64_t panel, int) { packer.pack_panel(panel); });
    if (packer.first_refused() != kNothingRefused) return describe(source, storage, packer.first_refused());
    return view;
}

}  // namespace ninfer
