#pragma once

// Reads 32 consecutive inputs of one output feature from a model file's row-major encoding.

#include <cstddef>
#include <cstdint>

#include "cpp/tensor/dtype.h"

namespace ninfer {

// A weight matrix as a model file holds it: row-major [out_features, in_features], rows without gaps, any alignment.
// The block encodings (Q8_0, Q4_0, Q4_1) need in_features to be a multiple of 32.
struct PackSource {
    const std::byte* data = nullptr;
    FileEncoding encoding = FileEncoding::kF32;
    std::int64_t out_features = 0;
    std::int64_t in_features = 0;
};

// Bytes of `in_features` consecutive inputs of one row.
std::size_t encoded_row_bytes(FileEncoding encoding, std::int64_t in_features);
// Whether the encoding stores scaled integers in blocks of 32.
bool is_block_encoding(FileEncoding encoding) noexcept;

// One block of a block encoding: w = scale · (q + offset) + minimum, with q read from `quants`.
struct EncodedBlock {
    std::uint16_t scale = 0;    // f16
    std::uint16_t minimum = 0;  // f16, Q4_1 only
    const std::uint8_t* quants = nullptr;
};
EncodedBlock encoded_block(const PackSource& source, std::int64_t out_feature, std::int64_t group);

// output[i] = weight[out_feature, 32 · group + i] for 32 inputs; zero beyond in_features. Exact, except that Q4_1
// rounds scale · q + minimum once.
void decode_group(const PackSource& source, std::int64_t out_feature, std::int64_t group, float* output);

}  // namespace ninfer
