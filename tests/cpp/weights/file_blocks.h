#pragma once

// Random weights in the block encodings of model files, with their values worked out independently of the packer: from
// the GGML block definitions, in double.

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "cpp/tensor/dtype.h"

namespace ninfer::testing_support {

// IEEE half to double from its definition.
inline double half_value(std::uint16_t half) {
    const int exponent = (half >> 10) & 0x1F;
    const int mantissa = half & 0x3FF;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

struct EncodedMatrix {
    std::vector<std::uint8_t> bytes;
    std::vector<double> values;  // row-major
};

// A finite half of either sign with an exponent between 2^-14 and 1, and a few subnormals and zeros.
inline std::uint16_t random_half(std::mt19937_64& engine) {
    const auto kind = engine() % 16;
    const auto sign = static_cast<std::uint16_t>((engine() & 1) << 15);
    if (kind == 0) return sign;
    const auto exponent = kind == 1 ? 0 : 1 + engine() % 15;
    return static_cast<std::uint16_t>(sign | (exponent << 10) | (engine() & 0x3FF));
}

inline void append_half(EncodedMatrix& matrix, std::uint16_t half) {
    matrix.bytes.push_back(static_cast<std::uint8_t>(half & 0xFF));
    matrix.bytes.push_back(static_cast<std::uint8_t>(half >> 8));
}

inline void append_block(EncodedMatrix& matrix, FileEncoding encoding, std::mt19937_64& engine) {
    const std::uint16_t scale = random_half(engine);
    const std::uint16_t minimum = encoding == FileEncoding::kQ4_1 ? random_half(engine) : std::uint16_t{0};
    append_half(matrix, scale);
    if (encoding == FileEncoding::kQ4_1) append_half(matrix, minimum);
    int quants[32];
    for (int& q : quants) q = static_cast<int>(encoding == FileEncoding::kQ8_0 ? engine() % 256 : engine() % 16);
    if (encoding == FileEncoding::kQ8_0) {
        quants[0] = 0x80;  // -128, which foreign quantisers write
        for (const int q : quants) matrix.bytes.push_back(static_cast<std::uint8_t>(q));
        for (int& q : quants) q = q >= 128 ? q - 256 : q;
    } else {
        for (int j = 0; j < 16; ++j)
            matrix.bytes.push_back(static_cast<std::uint8_t>(quants[j] | (quants[j + 16] << 4)));
        if (encoding == FileEncoding::kQ4_0)
            for (int& q : quants) q -= 8;
    }
    for (const int q : quants) matrix.values.push_back(half_value(scale) * q + half_value(minimum));
}

inline void append_plain(EncodedMatrix& matrix, FileEncoding encoding, std::mt19937_64& engine) {
    if (encoding == FileEncoding::kF16) {
        const std::uint16_t half = random_half(engine);
        append_half(matrix, half);
        matrix.values.push_back(half_value(half));
        return;
    }
    std::normal_distribution<float> normal;
    const float value = normal(engine) * std::ldexp(1.0F, static_cast<int>(engine() % 20) - 10);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    if (encoding == FileEncoding::kBf16) bits &= 0xFFFF0000U;
    float kept = 0;
    std::memcpy(&kept, &bits, 4);
    matrix.values.push_back(static_cast<double>(kept));
    if (encoding == FileEncoding::kF32) append_half(matrix, static_cast<std::uint16_t>(bits & 0xFFFF));
    append_half(matrix, static_cast<std::uint16_t>(bits >> 16));
}

inline EncodedMatrix random_matrix(FileEncoding encoding, std::int64_t out, std::int64_t in, std::uint64_t seed) {
    std::mt19937_64 engine(seed);
    EncodedMatrix matrix;
    const bool plain =
        encoding == FileEncoding::kF32 || encoding == FileEncoding::kF16 || encoding == FileEncoding::kBf16;
    for (std::int64_t i = 0; i < out * in / (plain ? 1 : 32); ++i) {
        if (plain)
            append_plain(matrix, encoding, engine);
        else
            append_block(matrix, encoding, engine);
    }
    return matrix;
}

}  // namespace ninfer::testing_support
