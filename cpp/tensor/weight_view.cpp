#include "cpp/tensor/weight_view.h"

#include "cpp/base/assert.h"

namespace ninfer {

namespace {

constexpr std::size_t kPanelAlignment = 64;

std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
    return (value + multiple - 1) / multiple * multiple;
}

}  // namespace

std::int64_t WeightView::padded_in_features() const noexcept {
    switch (storage) {
        case WeightStorage::kF32:
            return in_features;
        case WeightStorage::kBf16:
            return round_up(in_features, 2);
        case WeightStorage::kQ8:
        case WeightStorage::kQ4:
            return round_up(in_features, kQuantGroup);
    }
    NINFER_ASSERT(false, "unknown weight storage");
}

std::size_t WeightView::quant_bytes() const noexcept {
    const auto weights = static_cast<std::size_t>(padded_in_features() * kPanelOutputs);
    switch (storage) {
        case WeightStorage::kF32:
            return weights * 4;
        case WeightStorage::kBf16:
            return weights * 2;
        case WeightStorage::kQ8:
            return weights;
        case WeightStorage::kQ4:
            return weights / 2;
    }
    NINFER_ASSERT(false, "unknown weight storage");
}

std::size_t WeightView::panel_bytes() const noexcept {
    const auto groups = static_cast<std::size_t>(padded_in_features() / kQuantGroup);
    std::size_t scale_bytes = 0;
    if (storage == WeightStorage::kQ8) scale_bytes = groups * kPanelOutputs * 2;
    if (storage == WeightStorage::kQ4) scale_bytes = groups * kPanelOutputs * 4;
    const std::size_t bytes = quant_bytes() + scale_bytes;
    return (bytes + kPanelAlignment - 1) / kPanelAlignment * kPanelAlignment;
}

}  // namespace ninfer
