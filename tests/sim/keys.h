#pragma once

// How the models call what the stores have.

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ninfer::sim {

using Key = std::uint64_t;  // value of a handle; 0: none

// For printf's %llx.
inline unsigned long long shown(Key key) { return key; }

template <typename Map>
std::vector<Key> keys_of(const Map& map) {
    std::vector<Key> keys;
    for (const auto& [key, item] : map) keys.push_back(key);
    return keys;
}

inline bool contains(const std::vector<Key>& keys, Key key) { return std::ranges::find(keys, key) != keys.end(); }

}  // namespace ninfer::sim
