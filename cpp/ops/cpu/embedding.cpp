#include "cpp/ops/embedding.h"

#include "cpp/ops/cpu/isa_op_table.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

void embedding(OpContext&, const EmbeddingArgs&) { NINFER_ASSERT(false, "not built yet"); }

}  // namespace ninfer::NINFER_ISA_NAMESPACE
