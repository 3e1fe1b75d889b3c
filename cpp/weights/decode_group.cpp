#include "cpp/weights/decode_group.h"

#include <algorithm>
#include <cstring>

#include "cpp/base/assert.h"
#include "cpp/tensor/weight_view.h"
#include "cpp/weights/float16.h"

namespace ninfer {

namespace {

constexpr std::size_t kQ8BlockBytes = 34;
constexpr std::size_t kQ40BlockBytes = 18;
constexpr std::size_t kQ41BlockBytes = 20;

std::uint16_t read_u16(const std::byte* p) {
    std::uint16_t value = 0;
    std::memcpy(&value, p, sizeof value);
    return value;
}

const std::byte* plain_group(const PackSource& source, std::int64_t out_feature, std::int64_t group) {
    const auto element = static_cast<std::size_t>(out_feature * source.in_features + group * kQuantGroup);
    return source.data + element * (source.encoding == FileEncoding::kF32 ? 4 : 2);
}

void decode_block(FileEncoding encoding, const EncodedBlock& block, float* output) {
    const float scale = f16_to_f32(block.scale);
    const float minimum = f16_to_f32(block.minimum);
    for (int i = 0; i < kQuantGroup; ++i) {
        if (encoding == FileEncoding::kQ8_0) {
            output[i] = scale * static_cast<float>(static_cast<std::int8_t>(block.quants[i]));
            continue;
        }
        const int nibble = i < 16 ? block.quants[i] & 0xF : block.quants[i - 16] >> 4;
        output[i] = encoding == FileEncoding::kQ4_0 ? scale * static_cast<float>(nibble - 8)
                                                    : scale * static_cast<float>(nibble) + minimum;
    }
}

}  // namespace

bool is_block_encoding(FileEncoding encoding) noexcept {
    return encoding == FileEncoding::kQ8_0 || encoding == FileEncoding::kQ4_0 || encoding == FileEncoding::kQ4_1;
}

std::size_t encoded_row_bytes(FileEncoding encoding, std::int64_t in_features) {
    const auto inputs = static_cast<std::size_t>(in_features);
    if (is_block_encoding(encoding)) NINFER_ASSERT_EQ(in_features % kQuantGroup, 0);
    switch (encoding) {
        case FileEncoding::kF32:
            return inputs * 4;
        case FileEncoding::kF16:
        case FileEncoding::kBf16:
            return inputs * 2;
        case FileEncoding::kQ8_0:
            return inputs / kQuantGroup * kQ8BlockBytes;
        case FileEncoding::kQ4_0:
            return inputs / kQuantGroup * kQ40BlockBytes;
        case FileEncoding::kQ4_1:
            return inputs / kQuantGroup * kQ41BlockBytes;
    }
    NINFER_ASSERT(false, "unknown file encoding");
}

EncodedBlock encoded_block(const PackSource& source, std::int64_t out_feature, std::int64_t group) {
    const auto row = static_cast<std::size_t>(out_feature) * encoded_row_bytes(source.encoding, source.in_features);
    const std::byte* p = source.data + row + encoded_row_bytes(source.encoding, group * kQuantGroup);
    const bool has_minimum = source.encoding == FileEncoding::kQ4_1;
    return {.scale = read_u16(p),
            .minimum = has_minimum ? read_u16(p + 2) : std::uint16_t{0},
            .quants = reinterpret_cast<const std::uint8_t*>(p + (has_minimum ? 4 : 2))};
}

void decode_group(const PackSource& source, std::int64_t out_feature, std::int64_t group, float* output) {
    NINFER_ASSERT_LT(out_feature, source.out_features);
    if (is_block_encoding(source.encoding)) {
        decode_block(source.encoding, encoded_block(source, out_feature, group), output);
        return;
    }
    const auto count = static_cast<std::size_t>(std::min(kQuantGroup, source.in_features - group * kQuantGroup));
    const std::byte* p = plain_group(source, out_feature, group);
    std::fill(output + count, output + kQuantGroup, 0.0F);
    if (source.encoding == FileEncoding::kF32) {
        std::memcpy(output, p, count * sizeof(float));
        return;
    }
    const bool is_f16 = source.encoding == FileEncoding::kF16;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint16_t bits = read_u16(p + 2 * i);
        output[i] = is_f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
    }
}

}  // namespace ninfer
