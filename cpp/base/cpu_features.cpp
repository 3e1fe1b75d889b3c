#include "cpp/base/cpu_features.h"

namespace ninfer {

bool cpu_supports(InstructionSet isa) noexcept {
    switch (isa) {
        case InstructionSet::kScalar:
            return true;
        case InstructionSet::kAvx2:
            return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
        case InstructionSet::kAvx512:
            return cpu_supports(InstructionSet::kAvx2) && __builtin_cpu_supports("avx512f") &&
                   __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                   __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni") &&
                   __builtin_cpu_supports("avx512bf16");
    }
    return false;
}

InstructionSet best_instruction_set() noexcept {
    if (cpu_supports(InstructionSet::kAvx512)) return InstructionSet::kAvx512;
    if (cpu_supports(InstructionSet::kAvx2)) return InstructionSet::kAvx2;
    return InstructionSet::kScalar;
}

std::string_view to_string(InstructionSet isa) noexcept {
    switch (isa) {
        case InstructionSet::kScalar:
            return "scalar";
        case InstructionSet::kAvx2:
            return "avx2";
        case InstructionSet::kAvx512:
            return "avx512";
    }
    return "unknown";
}

std::optional<InstructionSet> instruction_set_from_string(std::string_view name) noexcept {
    for (const auto isa : {InstructionSet::kScalar, InstructionSet::kAvx2, InstructionSet::kAvx512})
        if (name == to_string(isa)) return isa;
    return std::nullopt;
}

}  // namespace ninfer
