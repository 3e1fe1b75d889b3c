#include "cpp/transaction/resource_stage.h"

namespace ninfer {

std::string_view to_string(ResourceStage stage) noexcept {
    switch (stage) {
        case ResourceStage::kNow:
            return "now";
        case ResourceStage::kReleased:
            return "released";
        case ResourceStage::kDemoting:
            return "demoting";
        case ResourceStage::kDemoted:
            return "demoted";
        case ResourceStage::kRestoring:
            return "restoring";
        case ResourceStage::kActivating:
            return "activating";
        case ResourceStage::kCommitted:
            return "committed";
    }
    return "";
}

}  // namespace ninfer
