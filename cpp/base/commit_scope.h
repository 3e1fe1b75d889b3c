#pragma once

// Between the checks of an operation and its end nothing may fail: whoever sees half of it has no state to go on from. So
// memory that runs out there is no error that anybody could handle, and the process stops. What is large, and may well be
// refused, is allocated before.

#include <exception>

#include "cpp/base/assert.h"

namespace ninfer {

class CommitScope {
   public:
    CommitScope() = default;
    CommitScope(const CommitScope&) = delete;
    CommitScope& operator=(const CommitScope&) = delete;
    ~CommitScope() {
        NINFER_ASSERT(std::uncaught_exceptions() == exceptions_, "memory ran out in the middle of a change");
    }

   private:
    int exceptions_ = std::uncaught_exceptions();
};

}  // namespace ninfer
