#pragma once

#include <vector>

#include "cpp/program/degradation.h"
#include "cpp/program/planning_domain.h"

namespace ninfer {

// Appends the steps down from these outcomes that concern an axis on which `residual` lacks something: what has anything
// there, may it be shared or not. `fixed` members (the source, and what leaves with it) are left alone. Pages leave the
// device from the end on, as many as are lacking or all of them; coverage is shortened likewise.
// `continued` is a consumed source that ends within a page, or kNoMember: who else keeps that page costs a Device page, the
// copy of it, even if nothing of his is on Device.
void list_degradations(const PlanningDomain& domain, std::span<const HoldingOutcome> outcomes,
                       std::span<const std::int32_t> fixed, std::int32_t continued, const ResourceAxes& residual,
                       std::vector<Degradation>& degradations);

}  // namespace ninfer
