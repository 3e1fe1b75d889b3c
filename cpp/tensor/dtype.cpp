#include "cpp/tensor/dtype.h"

namespace ninfer {

std::string_view to_string(WeightStorage storage) noexcept {
    constexpr std::string_view kNames[] = {"f32", "bf16", "q8", "q4"};
    return kNames[static_cast<int>(storage)];
}

std::string_view to_string(KvStorage storage) noexcept {
    constexpr std::string_view kNames[] = {"f32", "bf16", "int8"};
    return kNames[static_cast<int>(storage)];
}

std::string_view to_string(FileEncoding encoding) noexcept {
    constexpr std::string_view kNames[] = {"F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1"};
    return kNames[static_cast<int>(encoding)];
}

}  // namespace ninfer
