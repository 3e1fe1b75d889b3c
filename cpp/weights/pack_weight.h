#pragma once

// Packs a weight matrix from a model file's encoding into the panel layout of cpp/tensor/weight_view.h.
//
// Without loss: any encoding to f32; BF16 to bf16; Q8_0 and Q4_0 to q8; Q4_0 (minimum = -8 · scale) and Q4_1 to q4,
// with the file's own scales and integers. Otherwise the weight is decoded to f32 and rounded: to bf16 nearest even, to
// q8 and q4 as quantise_group.h says. The result depends on nothing but the source. Work is parallel over panels and
// streams by groups of 32 inputs: temporary memory is a few KB per thread.

#include <cstddef>
#include <cstdint>
#include <string>

#include "cpp/base/result.h"
#include "cpp/base/thread_pool.h"
#include "cpp/tensor/weight_view.h"
#include "cpp/weights/decode_group.h"

namespace ninfer {

// Why a tensor cannot be packed: one of its weights (the first in row-major order) is not finite, or too large for the
// storage. The caller names the tensor.
struct PackRefusal {
    std::int64_t out_feature = 0;
    std::int64_t in_feature = 0;
    std::string reason;
};

std::size_t packed_weight_bytes(std::int64_t out_features, std::int64_t in_features, WeightStorage storage);

// `destination` holds packed_weight_bytes(...) at a multiple of 64 bytes and need not be cleared. After a refusal its
// content is unspecified.
Result<WeightView, PackRefusal> pack_weight(ThreadPool& pool, const PackSource& source, WeightStorage storage,
                                            std::byte* destination);

}  // namespace ninfer
