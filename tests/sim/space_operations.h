#pragma once

// Operations on address spaces and pages: each draws its arguments, asks the model what must happen, calls the store,
// judges the answer, and does to the model what the store has done.

#include "tests/sim/sim_context.h"

namespace ninfer::sim {

void open_space(SimContext& context);
void map_space(SimContext& context);
// A unit: reads the whole prefix, writes tokens and some garbage beyond them, commits what it wrote or a part of it.
void run_unit(SimContext& context);
void commit_wrongly(SimContext& context);
void fork_space(SimContext& context);
void consume_space(SimContext& context);
void freeze_space(SimContext& context);
void finish_space(SimContext& context);
void share_space(SimContext& context);
void release_space(SimContext& context);
void drop_page(SimContext& context);
void ask_facts(SimContext& context);
void ask_validity(SimContext& context);
void ask_capture_shape(SimContext& context);

// Without drawing. The new space, or none.
SpaceId share_space(SimContext& context, SpaceId id, int frontier);
void release_space(SimContext& context, SpaceId id);

}  // namespace ninfer::sim
