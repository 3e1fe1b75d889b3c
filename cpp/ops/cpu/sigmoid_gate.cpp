#include "cpp/ops/sigmoid_gate.h"

#include "cpp/ops/cpu/isa_op_table.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

void sigmoid_gate(OpContext&, const SigmoidGateArgs&) { NINFER_ASSERT(false, "not built yet"); }

}  // namespace ninfer::NINFER_ISA_NAMESPACE
