#pragma once

// Which instruction-set variant of the CPU ops this machine can run, decided once at run time.

#include <optional>
#include <string_view>

namespace ninfer {

enum class InstructionSet : int { kScalar = 0, kAvx2 = 1, kAvx512 = 2 };

// kAvx2 needs AVX2, FMA and F16C; kAvx512 needs AVX-512 F, BW, DQ, VL, VNNI and BF16 (Zen 4, Sapphire Rapids and later;
// older AVX-512 machines run the AVX2 variant). The operating system must save the wide registers.
bool cpu_supports(InstructionSet isa) noexcept;

// The widest supported variant.
InstructionSet best_instruction_set() noexcept;

std::string_view to_string(InstructionSet isa) noexcept;
std::optional<InstructionSet> instruction_set_from_string(std::string_view name) noexcept;

}  // namespace ninfer
