#include "tests/sim/situation.h"

#include "cpp/base/assert.h"

namespace ninfer::sim {

std::vector<std::string> situation_names() {
    constexpr const char* kKinds[kCopyKinds] = {"page to Host",    "page to Device", "tail",   "image to Host",
                                                "image to Device", "snapshot",       "restore"};
    constexpr const char* kEndings[kCopyEndings] = {"published", "cancelled untouched", "cancelled midway",
                                                    "cancelled done", "failed, cancelled"};
    std::vector<std::string> names;
    for (const char* kind : kKinds)
        for (const char* ending : kEndings) names.push_back(std::string(kind) + ": " + ending);
    for (const char* name :
         {"consume: tail in place", "consume: tail cut short", "consume: tail copied", "freeze: written tail",
          "freeze: aligned", "freeze: pages ahead", "freeze: nothing new", "release: others stay",
          "fork: of what many see", "drop: one of two replicas", "image: borrowed twice"})
        names.emplace_back(name);
    NINFER_ASSERT_EQ(names.size(), static_cast<int>(Situation::kCount));
    return names;
}

}  // namespace ninfer::sim
