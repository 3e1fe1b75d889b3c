#pragma once

#include <span>
#include <vector>

#include "cpp/program/degradation.h"
#include "cpp/program/planning_domain.h"

namespace ninfer {

// Members that are not like the others; each may be none.
struct MembersOfOption {
    std::span<const std::int32_t> fixed;  // the source, and what leaves with it: sorted
    std::int32_t source = PlanningDomain::kNoMember;
    std::int32_t continued = PlanningDomain::kNoMember;  // a consumed source that ends within a page
};

// Appends the steps down from these outcomes that concern an axis on which `residual` lacks something: what has anything
// there, may it be shared or not. Fixed members are left alone, but the source may lose redundant Host replicas. Pages leave
// the device from the end on, as many as are lacking or all of them; coverage is shortened likewise.
// Who else keeps the page in which a continued source ends costs a Device page, the copy of it, even if nothing of his is on
// Device.
void list_degradations(const PlanningDomain& domain, std::span<const HoldingOutcome> outcomes,
                       const MembersOfOption& members, const ResourceAxes& residual,
                       std::vector<Degradation>& degradations);

}  // namespace ninfer
