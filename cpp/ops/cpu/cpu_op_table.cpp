#include "cpp/ops/cpu/cpu_op_table.h"

#include "cpp/base/assert.h"

namespace ninfer {

namespace scalar {
extern const OpTable kOpTable;
}
namespace avx2 {
extern const OpTable kOpTable;
}
namespace avx512 {
extern const OpTable kOpTable;
}

const OpTable& cpu_op_table(InstructionSet isa) {
    NINFER_ASSERT(cpu_supports(isa), "instruction set not supported by this machine");
    switch (isa) {
        case InstructionSet::kScalar:
            return scalar::kOpTable;
        case InstructionSet::kAvx2:
            return avx2::kOpTable;
        case InstructionSet::kAvx512:
            return avx512::kOpTable;
    }
    NINFER_ASSERT(false, "unknown instruction set");
}

}  // namespace ninfer
