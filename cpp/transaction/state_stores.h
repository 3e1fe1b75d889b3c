#pragma once

// The stores that a transaction works on. They outlive every domain, plan and transaction over them.

#include "cpp/state/replica_copies.h"

namespace ninfer {

struct StateStores {
    PagedKvStore* kv = nullptr;
    StateImageStore* images = nullptr;  // nullptr: a model without recurrent layers
    ReplicaCopies* copies = nullptr;
};

}  // namespace ninfer
