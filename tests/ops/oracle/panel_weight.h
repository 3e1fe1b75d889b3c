#pragma once

// Random weights in every storage: plain values for the oracles, and their packed panels, written here from the layout
// in cpp/tensor/weight_view.h alone (not by the packer under test elsewhere).

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "cpp/memory/host_buffer.h"
#include "cpp/tensor/weight_view.h"

namespace ninfer::oracle {

inline constexpr WeightStorage kStorages[] = {WeightStorage::kF32, WeightStorage::kBf16, WeightStorage::kQ8,
                                              WeightStorage::kQ4};

inline double half_to_double(std::uint16_t half) {
    const int exponent = (half >> 10) & 0x1F;
    const int mantissa = half & 0x3FF;
    const double magnitude = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(mantissa + 1024, exponent - 25);
    return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

inline float bits_to_float(std::uint32_t bits) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}
inline std::uint32_t float_to_bits(float value) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

struct PanelWeight {
    PanelWeight(WeightStorage weight_storage, std::int64_t out_features, std::int64_t in_features)
        : storage(weight_storage), out(out_features), in(in_features), groups((in_features + 31) / 32) {
        quants.resize(static_cast<std::size_t>(out * in));
        values.resize(quants.size());
        scales.resize(static_cast<std::size_t>(out * groups));
        minima.resize(scales.size());
        packed = HostBuffer(view().total_bytes());
    }

    WeightView view() const { return {packed.data(), storage, out, in}; }
    bool quantised() const { return storage == WeightStorage::kQ8 || storage == WeightStorage::kQ4; }
    std::size_t element(std::int64_t o, std::int64_t i) const { return static_cast<std::size_t>(o * in + i); }
    std::size_t group(std::int64_t o, std::int64_t i) const { return static_cast<std::size_t>(o * groups + i / 32); }

    double dequantised(std::int64_t o, std::int64_t i) const {
        if (!quantised()) return static_cast<double>(values[element(o, i)]);
        return half_to_double(scales[group(o, i)]) * quants[element(o, i)] + half_to_double(minima[group(o, i)]);
    }

    // Writes the panels from values (f32, bf16) or quants, scales and minima (q8, q4).
    void pack() {
        for (std::int64_t o = 0; o < out; ++o)
            for (std::int64_t i = 0; i < in; ++i) pack_element(o, i);
    }

    WeightStorage storage;
    std::int64_t out;
    std::int64_t in;
    std::int64_t groups;
    std::vector<float> values;
    std::vector<int> quants;
    std::vector<std::uint16_t> scales;
    std::vector<std::uint16_t> minima;
    HostBuffer packed;

   private:
    void pack_element(std::int64_t o, std::int64_t i) {
        std::byte* const panel = packed.data() + static_cast<std::size_t>(o / 16) * view().panel_bytes();
        const std::int64_t lane = o % 16;
        const std::int64_t g = i / 32;
        const std::int64_t k = i % 32;
        auto* const halves = reinterpret_cast<std::uint16_t*>(panel);
        auto* const bytes = reinterpret_cast<std::uint8_t*>(panel);
        auto* const scale_part = reinterpret_cast<std::uint16_t*>(panel + view().quant_bytes());
        const int q = quants[element(o, i)];
        switch (storage) {
            case WeightStorage::kF32:
                reinterpret_cast<float*>(panel)[i * 16 + lane] = values[element(o, i)];
                return;
            case WeightStorage::kBf16:
                halves[(i / 2 * 16 + lane) * 2 + i % 2] =
                    static_cast<std::uint16_t>(float_to_bits(values[element(o, i)]) >> 16);
                return;
            case WeightStorage::kQ8:
                bytes[((g * 8 + k / 4) * 16 + lane) * 4 + k % 4] = static_cast<std::uint8_t>(q & 0xFF);
                scale_part[g * 16 + lane] = scales[group(o, i)];
                return;
            case WeightStorage::kQ4: {
                std::uint8_t& both = bytes[((g * 4 + k % 16 / 4) * 16 + lane) * 4 + k % 4];
                both = static_cast<std::uint8_t>(both | (k < 16 ? q : q << 4));
                scale_part[(g * 2 + 0) * 16 + lane] = scales[group(o, i)];
                scale_part[(g * 2 + 1) * 16 + lane] = minima[group(o, i)];
                return;
            }
        }
    }
};

// Normal values; quants over the whole range of the storage, -128 and both ends of q4 included; scales of either sign.
inline PanelWeight random_weight(WeightStorage storage, std::int64_t out, std::int64_t in, std::uint64_t seed) {
    std::mt19937_64 engine(seed);
    std::normal_distribution<float> normal;
    PanelWeight weight(storage, out, in);
    for (float& value : weight.values) {
        value = normal(engine);
        if (storage == WeightStorage::kBf16) value = bits_to_float(float_to_bits(value) & 0xFFFF0000U);
    }
    for (int& q : weight.quants)
        q = storage == WeightStorage::kQ8 ? static_cast<int>(engine() % 256) - 128 : static_cast<int>(engine() % 16);
    const auto half = [&] { return static_cast<std::uint16_t>(((engine() & 1) << 15) | (0x2000 + engine() % 0x1000)); };
    for (auto& scale : weight.scales) scale = half();
    if (storage == WeightStorage::kQ4)
        for (auto& minimum : weight.minima) minimum = half();
    weight.pack();
    return weight;
}

}  // namespace ninfer::oracle
