#pragma once

// Carries a transition out on the model's lists, one phase after the other, and tells beforehand what a target comes to:
// by doing it to a copy of the model, with copies that arrive at once.

#include <array>

#include "tests/sim/context_model.h"
#include "tests/sim/faulty_copy_engine.h"

namespace ninfer::sim {

struct ModelProjection {
    std::array<ResourceAxes, kResourceStages.size()> used;
    ResourceAxes peak;
    ResourceAxes residual;
    bool pinned = false;
    int to_host = 0;  // copies
    int to_device = 0;
    int within_device = 0;
    KvActivation kv = KvActivation::kNone;
    ImageActivation image = ImageActivation::kNone;

    bool copies() const { return to_host + to_device + within_device > 0; }
};

// What follows from the target as things are now. Nothing has happened yet.
ModelTransition decide(const ContextModel& model, const ModelNeed& need, const ModelTarget& target);

ModelProjection project(const ContextModel& model, const ModelNeed& need, const ModelTarget& target);
// The model when the target has been carried out, whether or not it fits, before anything is published.
ContextModel reached(const ContextModel& model, const ModelNeed& need, const ModelTarget& target);

// The model's transition; what the engine has done with the copies decides. The publication is left to the caller, and so
// are the new names of shortened checkpoints.
void step_transition(ContextModel& model, const FaultyCopyEngine* engine);  // none: copies have arrived
void advance_transition(ContextModel& model, const FaultyCopyEngine* engine);

}  // namespace ninfer::sim
