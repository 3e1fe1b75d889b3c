#pragma once

// Operations on state images, as those on spaces. All are called only in worlds that have images.

#include "tests/sim/sim_context.h"

namespace ninfer::sim {

void open_image(SimContext& context);
void fork_image(SimContext& context);
void consume_image(SimContext& context);
void restore_image(SimContext& context);
// A unit: reads read(), writes write(), commits.
void run_image_unit(SimContext& context);
void freeze_image(SimContext& context);
void finish_image(SimContext& context);
void retain_image(SimContext& context);
void release_image(SimContext& context);
void drop_image(SimContext& context);

// Without drawing, for the end of a world.
void release_image(SimContext& context, ImageId id);

// The bytes of an image of this value.
void fill_image(std::uint64_t value, std::byte* bytes, std::size_t count);

}  // namespace ninfer::sim
