#pragma once

// Where each recurrent layer's state lies in a state image, and each attention layer's planes in a page group.

#include <cstddef>
#include <cstdint>

#include "cpp/base/assert.h"
#include "cpp/tensor/paged_kv_view.h"
#include "cpp/tensor/recurrent_state_view.h"

namespace ninfer {

// One image: per recurrent layer its recurrent floats, then its convolution floats, each rounded up to 64 bytes.
struct StateImageLayout {
    RecurrentStateLayout layer;
    std::int64_t recurrent_layers = 0;

    static std::size_t aligned_bytes(std::int64_t floats) {
        constexpr std::size_t kAlignment = 64;
        return (static_cast<std::size_t>(floats) * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    }
    std::size_t layer_bytes() const {
        return aligned_bytes(layer.recurrent_floats()) + aligned_bytes(layer.conv_floats());
    }
    std::size_t image_bytes() const { return static_cast<std::size_t>(recurrent_layers) * layer_bytes(); }
    std::size_t recurrent_offset(std::int64_t index) const {
        NINFER_ASSERT_LE(0, index);
        NINFER_ASSERT_LT(index, recurrent_layers);
        return static_cast<std::size_t>(index) * layer_bytes();
    }
    std::size_t conv_offset(std::int64_t index) const {
        return recurrent_offset(index) + aligned_bytes(layer.recurrent_floats());
    }
};

struct PageGroupLayout {
    KvLayerLayout layer;
    std::int64_t attention_layers = 0;

    std::size_t layer_offset(std::int64_t index) const {
        NINFER_ASSERT_LE(0, index);
        NINFER_ASSERT_LT(index, attention_layers);
        return static_cast<std::size_t>(index) * layer.layer_bytes();
    }
    std::size_t group_bytes() const { return static_cast<std::size_t>(attention_layers) * layer.layer_bytes(); }
};

}  // namespace ninfer
