#include "cpp/ops/paged_attention.h"

#include "cpp/ops/cpu/isa_op_table.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

void paged_attention(OpContext&, const PagedAttentionArgs&) { NINFER_ASSERT(false, "not built yet"); }

}  // namespace ninfer::NINFER_ISA_NAMESPACE
