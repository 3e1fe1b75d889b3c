#include "cpp/transaction/transaction_result.h"

namespace ninfer {

std::string_view to_string(TransactionEnd end) noexcept {
    switch (end) {
        case TransactionEnd::kCommitted:
            return "committed";
        case TransactionEnd::kCancelled:
            return "cancelled";
        case TransactionEnd::kCopyFailed:
            return "copy_failed";
    }
    return "";
}

}  // namespace ninfer
