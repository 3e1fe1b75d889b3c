#include "cpp/ops/norm_rope_append.h"

#include "cpp/ops/cpu/isa_op_table.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

void norm_rope_append(OpContext&, const NormRopeAppendArgs&) { NINFER_ASSERT(false, "not built yet"); }

}  // namespace ninfer::NINFER_ISA_NAMESPACE
