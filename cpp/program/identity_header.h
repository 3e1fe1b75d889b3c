#pragma once

// What must be equal before the first token counts: the exact text of whatever separates caches, compared byte by byte.
// Weights, storage formats and state layout are not here: one program has one of each (a session file names them).

#include <cstdint>
#include <string>

namespace ninfer {

struct IdentityHeader {
    std::string salt;             // the request's cache salt; requests with different salts never share
    std::string mode;             // template and runtime mode
    std::int64_t rope_delta = 0;  // position of the first generated token minus its index; 0 for text

    bool operator==(const IdentityHeader&) const = default;
};

}  // namespace ninfer
