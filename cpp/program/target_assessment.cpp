#include "cpp/program/target_assessment.h"

namespace ninfer {

std::string_view to_string(TargetStatus status) noexcept {
    switch (status) {
        case TargetStatus::kReady:
            return "ready";
        case TargetStatus::kNeedsTransfer:
            return "needs_transfer";
        case TargetStatus::kTemporarilyBlocked:
            return "temporarily_blocked";
        case TargetStatus::kPermanentlyInfeasible:
            return "permanently_infeasible";
    }
    return "";
}

}  // namespace ninfer
