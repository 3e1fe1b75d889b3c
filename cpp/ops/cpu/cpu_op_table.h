#pragma once

#include "cpp/base/cpu_features.h"
#include "cpp/ops/op_table.h"

namespace ninfer {

// The CPU ops compiled for one instruction set; asserts that this machine supports it.
const OpTable& cpu_op_table(InstructionSet isa);

}  // namespace ninfer
