#pragma once

// Element types of tensors and storage types of weights and KV pages.

#include <cstdint>
#include <string_view>

namespace ninfer {

// How a packed weight is stored. Layouts: cpp/tensor/weight_view.h.
enum class WeightStorage : std::uint8_t { kF32 = 0, kBf16 = 1, kQ8 = 2, kQ4 = 3 };

// How keys and values are stored in KV pages. Layouts: cpp/tensor/paged_kv_view.h.
enum class KvStorage : std::uint8_t { kF32 = 0, kBf16 = 1, kInt8 = 2 };

// How a tensor is encoded in a model file: row-major [out_features, in_features], the quantised ones in blocks of 32
// consecutive inputs as GGML defines them (Q8_0: f16 scale, 32 × int8; Q4_0: f16 scale, 16 bytes of nibbles with an
// offset of 8; Q4_1: f16 scale, f16 minimum, 16 bytes of nibbles; nibble i of byte j is input j + 16·i).
enum class FileEncoding : std::uint8_t { kF32, kF16, kBf16, kQ8_0, kQ4_0, kQ4_1 };

std::string_view to_string(WeightStorage storage) noexcept;
std::string_view to_string(KvStorage storage) noexcept;
std::string_view to_string(FileEncoding encoding) noexcept;

}  // namespace ninfer
