#pragma once

#include <optional>

#include "cpp/program/degradation.h"
#include "cpp/program/planning_domain.h"

namespace ninfer {

// What a holding that goes wants: the one form of it, so that equal targets look equal.
HoldingOutcome removed_outcome();

// Takes one step of one member. kBackwards (wanted what the step asks for, found what there is, where that is a number):
// no step down, or of something that is not there.
std::optional<Refusal> step_down(HoldingOutcome& outcome, const HoldingShape& shape, const Degradation& step);

}  // namespace ninfer
