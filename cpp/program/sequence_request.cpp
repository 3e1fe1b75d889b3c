#include "cpp/program/sequence_request.h"

namespace ninfer {

std::string_view to_string(SourceUse use) noexcept {
    switch (use) {
        case SourceUse::kRetain:
            return "retain";
        case SourceUse::kConsume:
            return "consume";
        case SourceUse::kContinue:
            return "continue";
    }
    return "unknown";
}

}  // namespace ninfer
