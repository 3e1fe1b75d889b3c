#pragma once

// Tokens as the model knows them: what the ledger shows, and when each was made. Two lists have a beginning in common as
// far as their tokens are the same ones; equal tokens of different births only look alike.

#include <cstdint>
#include <vector>

namespace ninfer::sim {

struct KnownToken {
    std::int32_t id = 0;
    std::uint64_t birth = 0;  // unique in its world

    bool operator==(const KnownToken&) const = default;
};

using TokenList = std::vector<KnownToken>;

inline std::vector<std::int32_t> ids_of(const TokenList& tokens) {
    std::vector<std::int32_t> ids;
    ids.reserve(tokens.size());
    for (const KnownToken& token : tokens) ids.push_back(token.id);
    return ids;
}

}  // namespace ninfer::sim
