#pragma once

// What a number was measured on. Every bench prints this line first.

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include "cpp/base/cpu_features.h"

namespace ninfer::bench {

inline std::string cpu_model() {
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        const auto value = line.find(": ");
        if (std::string_view(line).starts_with("model name") && value != std::string::npos)
            return line.substr(value + 2);
    }
    return "unknown processor";
}

// Processor, CPUs that this process sees, the widest instruction set of our ops that it runs, and the load beside us.
inline void print_machine() {
    double load = 0.0;
    static_cast<void>(::getloadavg(&load, 1));
    const std::string_view isa = to_string(best_instruction_set());
    std::printf("%s, %u CPUs, up to %.*s, load %.2f\n", cpu_model().c_str(), std::thread::hardware_concurrency(),
                static_cast<int>(isa.size()), isa.data(), load);
}

}  // namespace ninfer::bench
