#pragma once

// Operations on active sequences, each told to the model first. opening_expectation.h: what an opening must come to.

#include "tests/sim/program_sim.h"

namespace ninfer::sim {

void open_root_sequence(ProgramSim& sim);
void open_sequence_from(ProgramSim& sim);
// Appends tokens and computes some, as a unit of a model would.
void run_sequence_unit(ProgramSim& sim);
void capture_sequence(ProgramSim& sim);
void finish_sequence(ProgramSim& sim);
void close_one_sequence(ProgramSim& sim);

// Without drawing.
void run_sequence_unit(ProgramSim& sim, Key key);
void close_one_sequence(ProgramSim& sim, Key key);
// Why the sequence cannot be captured (finished) like this now.
Expected no_capture(const ProgramSim& sim, Key key, Tier tier);
Expected no_finish(const ProgramSim& sim, Key key, Tier tier);
// What both must find free, if nothing else stands against them.
ResourceAxes room_for_image(const ProgramSim& sim, const SequenceRecord& sequence, Tier tier);
Expected not_ready_to_capture(const ProgramSim& sim, Key key, bool finishes);
// What they change. The revision moves with them, but for a capture that waits for its image: false.
bool do_capture(ProgramSim& sim, Key key, const CaptureRequest& request, Key captured);
void do_finish(ProgramSim& sim, Key key, const FinishRequest& request, Key owner, Key endpoint);

bool can_compute(const ProgramSim& sim, const SequenceRecord& sequence);
// It cannot compute because a copy of its image has failed or is on its way.
bool is_busy(const ProgramSim& sim, const SequenceRecord& sequence);
bool any_busy(const ProgramSim& sim);

// Tokens for `count` more of a sequence.
TokenList draw_tokens(ProgramSim& sim, int count);
void add_job(ProgramSim& sim, JobRecord job);

}  // namespace ninfer::sim
