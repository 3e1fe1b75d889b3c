#pragma once

// Operations on checkpoints: where they lie, whether they stay, and the copies on their way.

#include <span>

#include "tests/sim/program_sim.h"

namespace ninfer::sim {

void start_checkpoint_copy(ProgramSim& sim);
void start_checkpoint_copy(ProgramSim& sim, Tier tier);
void drop_checkpoint_replicas(ProgramSim& sim);
void delete_one_checkpoint(ProgramSim& sim);
void release_one_owner(ProgramSim& sim);
void cancel_checkpoint_copies(ProgramSim& sim);
void poll_program_copies(ProgramSim& sim);

// Without drawing.
void poll_program_copies(ProgramSim& sim, std::size_t max_bytes);
void release_one_owner(ProgramSim& sim, Key owner);

// Why these checkpoints cannot go together.
Expected no_removal(const ProgramSim& sim, std::span<const Key> checkpoints);
// Why a sequence cannot start from the checkpoint, room and pages apart.
Expected not_a_source(const ProgramSim& sim, Key checkpoint, int frontier, const SequenceRequest& request);
// Why no sequence can take the owner over.
Expected no_takeover(const ProgramSim& sim, Key owner);
// In the model: what is condemned and can go does. Whether anything did.
bool release_condemned(ProgramSim& sim);
// In the model: the copies of the jobs are given back, or drain. Whether something has changed for good.
bool cancel_jobs(ProgramSim& sim, FunctionRef<bool(const JobRecord&)> chosen);

}  // namespace ninfer::sim
