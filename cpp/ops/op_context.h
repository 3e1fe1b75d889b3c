#pragma once

// What every op is given besides its arguments: who computes and where scratch comes from. No op allocates.

#include "cpp/base/thread_pool.h"
#include "cpp/memory/scratch_arena.h"

namespace ninfer {

struct OpContext {
    ThreadPool& pool;
    ScratchArena& scratch;
};

}  // namespace ninfer
