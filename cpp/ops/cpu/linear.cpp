#include "cpp/ops/linear.h"

#include "cpp/ops/cpu/isa_op_table.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

void linear(OpContext&, const LinearArgs&) { NINFER_ASSERT(false, "not built yet"); }

}  // namespace ninfer::NINFER_ISA_NAMESPACE
