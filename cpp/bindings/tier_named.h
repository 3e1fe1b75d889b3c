#pragma once

#include <string>

#include "cpp/bindings/result_to_python.h"
#include "cpp/state/tier.h"

namespace ninfer::bindings {

inline Tier tier_named(const std::string& name) {
    if (name == "device") return Tier::kDevice;
    require(name == "host", "tier must be 'device' or 'host'");
    return Tier::kHost;
}

}  // namespace ninfer::bindings
