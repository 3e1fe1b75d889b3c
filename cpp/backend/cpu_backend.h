#pragma once

// The CPU backend: compute threads, scratch and the ops of one instruction set.

#include "cpp/base/cpu_features.h"
#include "cpp/ops/cpu/cpu_op_table.h"
#include "cpp/ops/op_context.h"

namespace ninfer {

class CpuBackend {
   public:
    CpuBackend(InstructionSet isa, int threads, std::size_t scratch_bytes)
        : isa_(isa), pool_(threads), scratch_(scratch_bytes), context_{pool_, scratch_} {}

    InstructionSet instruction_set() const noexcept { return isa_; }
    const OpTable& ops() const { return cpu_op_table(isa_); }
    OpContext& context() noexcept { return context_; }
    const ScratchArena& scratch() const noexcept { return scratch_; }

   private:
    InstructionSet isa_;
    ThreadPool pool_;
    ScratchArena scratch_;
    OpContext context_;
};

}  // namespace ninfer
