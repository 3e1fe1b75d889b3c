#include "tests/sim/sim_options.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string_view>

namespace ninfer::sim {
namespace {

constexpr const char* kUsage =
    "usage: ninfer_sim [--seed S] [--steps N] [--scope stores|all] [--faults on|off] [--replay WORLD]\n"
    "  --seed    repeats a run; without it NINFER_TEST_SEED, or a fresh one\n"
    "  --steps   operations to try (100000)\n"
    "  --scope   the stores alone (stores), or a program's state with plans and transitions (all)\n"
    "  --faults  whether copies fail (on)\n"
    "  --replay  runs only this world of the run, and prints every operation\n";

template <typename Number>
bool parse_number(std::string_view text, Number& number) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    return error == std::errc{} && end == text.data() + text.size();
}

std::uint64_t fresh_seed() {
    std::uint64_t seed = 0;
    const char* text = std::getenv("NINFER_TEST_SEED");
    return text != nullptr && parse_number(text, seed) ? seed : std::uint64_t{std::random_device{}()};
}

bool apply(SimOptions& options, std::string_view name, std::string_view value) {
    if (name == "--seed") return parse_number(value, options.seed);
    if (name == "--steps") return parse_number(value, options.steps) && options.steps > 0;
    if (name == "--replay") return parse_number(value, options.replay_world.emplace());
    if (name == "--scope") options.whole_program = value == "all";
    if (name == "--scope") return value == "stores" || value == "all";
    if (name == "--faults") options.faults = value == "on";
    return name == "--faults" && (value == "on" || value == "off");
}

}  // namespace

std::optional<SimOptions> parse_sim_options(int count, char** arguments) {
    SimOptions options;
    options.seed = fresh_seed();
    for (int i = 1; i < count; i += 2) {
        if (i + 1 >= count || !apply(options, arguments[i], arguments[i + 1])) {
            std::fputs(kUsage, stderr);
            return std::nullopt;
        }
    }
    return options;
}

}  // namespace ninfer::sim
