#pragma once

#include <optional>

#include "cpp/program/context_plan.h"

namespace ninfer::bindings {

// A plan as Python holds it: none once it has been started.
struct PlanValue {
    std::optional<ContextPlan> plan;
};

}  // namespace ninfer::bindings
