#include "cpp/program/degradation.h"

#include "cpp/program/degradation_step.h"

namespace ninfer {

std::string_view to_string(DegradationKind kind) noexcept {
    switch (kind) {
        case DegradationKind::kDropHostPages:
            return "drop_host_pages";
        case DegradationKind::kDropHostImage:
            return "drop_host_image";
        case DegradationKind::kPagesToHost:
            return "pages_to_host";
        case DegradationKind::kImageToHost:
            return "image_to_host";
        case DegradationKind::kShorten:
            return "shorten";
        case DegradationKind::kDelete:
            return "delete";
        case DegradationKind::kEvict:
            return "evict";
    }
    return "";
}

HoldingOutcome removed_outcome() { return {.survives = false}; }

std::optional<Refusal> step_down(HoldingOutcome& outcome, const HoldingShape& shape, const Degradation& step) {
    const Refusal no_step{RefusalKind::kBackwards, 0, 0};
    if (!outcome.survives) return no_step;
    switch (step.kind) {
        case DegradationKind::kDropHostPages:
            if (outcome.drops_host || shape.on_both == 0) return no_step;
            outcome.drops_host = true;
            return std::nullopt;
        case DegradationKind::kDropHostImage:
            if (outcome.image != ImageOutcome::kAsIs || !(shape.image_on_device && shape.image_on_host)) return no_step;
            outcome.image = ImageOutcome::kDeviceOnly;
            return std::nullopt;
        case DegradationKind::kPagesToHost:
            if (step.device_pages < 0 || step.device_pages >= outcome.device_pages)
                return Refusal{RefusalKind::kBackwards, step.device_pages, outcome.device_pages};
            outcome.device_pages = static_cast<std::int32_t>(step.device_pages);
            return std::nullopt;
        case DegradationKind::kImageToHost:
            if (outcome.image != ImageOutcome::kAsIs || !shape.image_on_device) return no_step;
            outcome.image = ImageOutcome::kHostOnly;
            return std::nullopt;
        case DegradationKind::kShorten:
            if (shape.has_image() || step.frontier < 1 || step.frontier >= outcome.frontier)
                return Refusal{RefusalKind::kBackwards, step.frontier, outcome.frontier};
            outcome.frontier = step.frontier;
            return std::nullopt;
        case DegradationKind::kDelete:
        case DegradationKind::kEvict:
            outcome = removed_outcome();
            return std::nullopt;
    }
    return no_step;
}

}  // namespace ninfer
