#include "cpp/base/xxh3_128.h"

#include <array>
#include <bit>
#include <cstring>

namespace ninfer {

static_assert(std::endian::native == std::endian::little, "words are read as they lie in memory");

namespace {

constexpr std::uint64_t kPrime32A = 0x9E3779B1;
constexpr std::uint64_t kPrime32B = 0x85EBCA77;
constexpr std::uint64_t kPrime32C = 0xC2B2AE3D;
constexpr std::uint64_t kPrime64A = 0x9E3779B185EBCA87;
constexpr std::uint64_t kPrime64B = 0xC2B2AE3D27D4EB4F;
constexpr std::uint64_t kPrime64C = 0x165667B19E3779F9;
constexpr std::uint64_t kPrime64D = 0x85EBCA77C2B2AE63;
constexpr std::uint64_t kPrime64E = 0x27D4EB2F165667C5;
constexpr std::uint64_t kMixA = 0x165667919E3779F9;
constexpr std::uint64_t kMixB = 0x9FB21C651E98DF25;

constexpr std::size_t kSecretBytes = 192;
// The default secret, of the algorithm's description.
alignas(64) constexpr std::array<std::uint8_t, kSecretBytes> kSecret = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
    0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
    0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
    0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
    0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

using Product = unsigned __int128;

template <typename Word>
Word read(const void* from) noexcept {
    Word word;
    std::memcpy(&word, from, sizeof(Word));
    return word;
}
std::uint64_t secret64(std::size_t offset) noexcept { return read<std::uint64_t>(kSecret.data() + offset); }
std::uint32_t secret32(std::size_t offset) noexcept { return read<std::uint32_t>(kSecret.data() + offset); }

std::uint64_t low_half(Product product) noexcept { return static_cast<std::uint64_t>(product); }
std::uint64_t high_half(Product product) noexcept { return static_cast<std::uint64_t>(product >> 64); }
Product multiply(std::uint64_t left, std::uint64_t right) noexcept { return static_cast<Product>(left) * right; }
std::uint64_t folded_product(std::uint64_t left, std::uint64_t right) noexcept {
    const Product product = multiply(left, right);
    return low_half(product) ^ high_half(product);
}

std::uint64_t avalanche(std::uint64_t x) noexcept {
    x = (x ^ (x >> 37)) * kMixA;
    return x ^ (x >> 32);
}
// The one of XXH64.
std::uint64_t long_avalanche(std::uint64_t x) noexcept {
    x = (x ^ (x >> 33)) * kPrime64B;
    x = (x ^ (x >> 29)) * kPrime64C;
    return x ^ (x >> 32);
}

Digest128 digest_of_1_to_3(const std::byte* input, std::size_t length) noexcept {
    const auto byte_at = [&](std::size_t i) { return static_cast<std::uint32_t>(input[i]); };
    const auto combined =
        byte_at(length - 1) | static_cast<std::uint32_t>(length) << 8 | byte_at(0) << 16 | byte_at(length >> 1) << 24;
    const std::uint64_t low = secret32(0) ^ secret32(4) ^ combined;
    const std::uint64_t high = secret32(8) ^ secret32(12) ^ std::rotl(__builtin_bswap32(combined), 13);
    return {long_avalanche(low), long_avalanche(high)};
}

Digest128 digest_of_4_to_8(const std::byte* input, std::size_t length) noexcept {
    const std::uint64_t first = read<std::uint32_t>(input);
    const std::uint64_t last = read<std::uint32_t>(input + length - 4);
    const std::uint64_t value = secret64(16) ^ secret64(24) ^ (first | last << 32);
    const Product product = multiply(value, kPrime64A + (length << 2));
    const std::uint64_t high = high_half(product) + (low_half(product) << 1);
    std::uint64_t low = low_half(product) ^ (high >> 3);
    low = (low ^ (low >> 35)) * kMixB;
    return {low ^ (low >> 28), avalanche(high)};
}

Digest128 digest_of_9_to_16(const std::byte* input, std::size_t length) noexcept {
    const auto first = read<std::uint64_t>(input);
    const auto last = read<std::uint64_t>(input + length - 8);
    const std::uint64_t keyed = secret64(48) ^ secret64(56) ^ last;
    const Product product = multiply(secret64(32) ^ secret64(40) ^ first ^ last, kPrime64A);
    std::uint64_t low = low_half(product) + (static_cast<std::uint64_t>(length - 1) << 54);
    const std::uint64_t high = high_half(product) + keyed + (keyed & 0xFFFFFFFF) * (kPrime32B - 1);
    low ^= __builtin_bswap64(high);
    const Product second = multiply(low, kPrime64B);
    return {avalanche(low_half(second)), avalanche(high_half(second) + high * kPrime64B)};
}

// The state of medium inputs.
struct Accumulators {
    std::uint64_t low;
    std::uint64_t high = 0;

    void mix(const std::byte* left, const std::byte* right, std::size_t secret) noexcept {
        const auto left_a = read<std::uint64_t>(left);
        const auto left_b = read<std::uint64_t>(left + 8);
        const auto right_a = read<std::uint64_t>(right);
        const auto right_b = read<std::uint64_t>(right + 8);
        low += folded_product(left_a ^ secret64(secret), left_b ^ secret64(secret + 8));
        high += folded_product(right_a ^ secret64(secret + 16), right_b ^ secret64(secret + 24));
        low ^= right_a + right_b;
        high ^= left_a + left_b;
    }

    Digest128 finish(std::size_t length) const noexcept {
        const std::uint64_t mixed = low * kPrime64A + high * kPrime64D + length * kPrime64B;
        return {avalanche(low + high), 0 - avalanche(mixed)};
    }
};

Digest128 digest_of_17_to_128(const std::byte* input, std::size_t length) noexcept {
    Accumulators state{length * kPrime64A};
    const std::byte* const end = input + length - 16;
    if (length > 96) state.mix(input + 48, end - 48, 96);
    if (length > 64) state.mix(input + 32, end - 32, 64);
    if (length > 32) state.mix(input + 16, end - 16, 32);
    state.mix(input, end, 0);
    return state.finish(length);
}

Digest128 digest_of_129_to_240(const std::byte* input, std::size_t length) noexcept {
    Accumulators state{length * kPrime64A};
    for (std::size_t i = 0; i < 4; ++i) state.mix(input + 32 * i, input + 32 * i + 16, 32 * i);
    state.low = avalanche(state.low);
    state.high = avalanche(state.high);
    for (std::size_t i = 4; i < length / 32; ++i) state.mix(input + 32 * i, input + 32 * i + 16, 32 * (i - 4) + 3);
    // The end once more, its halves in the other order.
    state.mix(input + length - 16, input + length - 32, 103);
    return state.finish(length);
}

constexpr std::size_t kStripeBytes = 64;
constexpr std::size_t kStripesPerBlock = (kSecretBytes - kStripeBytes) / 8;
constexpr std::size_t kBlockBytes = kStripeBytes * kStripesPerBlock;

// The state of long inputs.
struct Lanes {
    std::array<std::uint64_t, 8> values = {kPrime32C, kPrime64A, kPrime64B, kPrime64C,
                                           kPrime64D, kPrime32B, kPrime64E, kPrime32A};

    void take_stripe(const std::byte* stripe, std::size_t secret) noexcept {
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto word = read<std::uint64_t>(stripe + 8 * i);
            const std::uint64_t keyed = word ^ secret64(secret + 8 * i);
            values[i ^ 1] += word;
            values[i] += (keyed & 0xFFFFFFFF) * (keyed >> 32);
        }
    }
    void scramble() noexcept {
        for (std::size_t i = 0; i < values.size(); ++i)
            values[i] = (values[i] ^ (values[i] >> 47) ^ secret64(kSecretBytes - kStripeBytes + 8 * i)) * kPrime32A;
    }
    std::uint64_t merged(std::uint64_t start, std::size_t secret) const noexcept {
        for (std::size_t i = 0; i < values.size(); i += 2)
            start += folded_product(values[i] ^ secret64(secret + 8 * i), values[i + 1] ^ secret64(secret + 8 * i + 8));
        return avalanche(start);
    }
};

Digest128 digest_of_long(const std::byte* input, std::size_t length) noexcept {
    Lanes lanes;
    // The last block, full or not, and the last stripe are taken apart from the others.
    const std::size_t blocks = (length - 1) / kBlockBytes;
    for (std::size_t block = 0; block < blocks; ++block) {
        for (std::size_t stripe = 0; stripe < kStripesPerBlock; ++stripe)
            lanes.take_stripe(input + block * kBlockBytes + stripe * kStripeBytes, 8 * stripe);
        lanes.scramble();
    }
    const std::byte* const last_block = input + blocks * kBlockBytes;
    const std::size_t stripes = (length - 1 - blocks * kBlockBytes) / kStripeBytes;
    for (std::size_t stripe = 0; stripe < stripes; ++stripe)
        lanes.take_stripe(last_block + stripe * kStripeBytes, 8 * stripe);
    lanes.take_stripe(input + length - kStripeBytes, kSecretBytes - kStripeBytes - 7);
    return {lanes.merged(length * kPrime64A, 11),
            lanes.merged(~(length * kPrime64B), kSecretBytes - kStripeBytes - 11)};
}

}  // namespace

Digest128 xxh3_128(std::span<const std::byte> input) noexcept {
    const std::byte* const data = input.data();
    const std::size_t length = input.size();
    if (length > 240) return digest_of_long(data, length);
    if (length > 128) return digest_of_129_to_240(data, length);
    if (length > 16) return digest_of_17_to_128(data, length);
    if (length > 8) return digest_of_9_to_16(data, length);
    if (length > 3) return digest_of_4_to_8(data, length);
    if (length > 0) return digest_of_1_to_3(data, length);
    return {long_avalanche(secret64(64) ^ secret64(72)), long_avalanche(secret64(80) ^ secret64(88))};
}

}  // namespace ninfer
