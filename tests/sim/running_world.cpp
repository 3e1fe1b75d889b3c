#include "tests/sim/running_world.h"

#include <csignal>
#include <cstdio>

namespace ninfer::sim {
namespace {

const RunningWorld* running = nullptr;

// In the thread that failed, so that printing is safe enough.
extern "C" void print_at_abort(int) {
    if (running != nullptr) running->print();
}

}  // namespace

void RunningWorld::print() const {
    std::fprintf(stderr, "the model:\n%s", model().c_str());
    std::fprintf(stderr, "ninfer_sim: seed %llu, world %lld, step %lld: %s\n",
                 static_cast<unsigned long long>(options.seed), static_cast<long long>(world),
                 static_cast<long long>(step), operation().c_str());
    std::fprintf(stderr, "repeat it with: ninfer_sim --scope %s --seed %llu --steps %lld --faults %s --replay %lld\n",
                 scope, static_cast<unsigned long long>(options.seed), static_cast<long long>(options.steps),
                 options.faults ? "on" : "off", static_cast<long long>(world));
}

void set_running_world(const RunningWorld* world) {
    running = world;
    std::signal(SIGABRT, print_at_abort);
}

}  // namespace ninfer::sim
