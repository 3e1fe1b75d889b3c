#pragma once

// Operations on copies, as those on spaces: start one of each kind, let the engine move, publish, cancel in any phase.

#include "tests/sim/sim_context.h"

namespace ninfer::sim {

void start_page(SimContext& context);
void start_tail(SimContext& context);
void start_image(SimContext& context);
void start_snapshot(SimContext& context);
void start_restore(SimContext& context);
void poll_copies(SimContext& context);
void ask_status(SimContext& context);
void publish_copy(SimContext& context);
void cancel_copy(SimContext& context);

// Without drawing, for the end of a world.
void poll_copies(SimContext& context, std::size_t max_bytes);
void cancel_copy(SimContext& context, CopyId id);

}  // namespace ninfer::sim
