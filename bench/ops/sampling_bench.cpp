// Sampling at a vocabulary of 248,320: greedy must read 1 MB of logits; the limit beside it is the time of reading
// as many bytes in the same run, from the cache, where the LM head has just left them.

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/base/cpu_features.h"
#include "cpp/ops/cpu/cpu_op_table.h"
#include "cpp/ops/op_context.h"

namespace ninfer {
namespace {

constexpr std::int64_t kVocabulary = 248320;
constexpr int kRepeats = 31;

struct Setting {
    const char* name;
    SamplerInput input;
};

}  // namespace
}  // namespace ninfer

int main(int argc, char** argv) {
    using namespace ninfer;
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    std::vector<float> logits(static_cast<std::size_t>(kVocabulary));
    std::mt19937 engine(1);
    std::normal_distribution<float> normal(0.0F, 3.0F);
    for (auto& logit : logits) logit = normal(engine);
    const Setting settings[] = {
        {"greedy", {}},
        {"greedy, logprobs 5", {.logprobs = 5}},
        {"temperature", {.temperature = 0.8F}},
        {"top_k 20 top_p 0.95", {.temperature = 0.8F, .top_p = 0.95F, .top_k = 20}},
        {"top_p 0.95", {.temperature = 0.8F, .top_p = 0.95F}},
        {"min_p 0.05", {.temperature = 0.8F, .min_p = 0.05F}},
        {"top_p 0.95, temperature 100", {.temperature = 100.0F, .top_p = 0.95F}},
    };
    ThreadPool pool(threads);
    ScratchArena scratch(sampling_scratch_bytes(1, kVocabulary));
    OpContext context{pool, scratch};
    bench::print_machine();
    std::printf("sampling, one row of %ld logits (0.99 MB), %d thread(s), fastest of %d; reading them once: %.1f us\n",
                static_cast<long>(kVocabulary), threads, kRepeats,
                bench::cached_read_seconds(pool, 4 * kVocabulary) * 1e6);
    for (const auto isa : {InstructionSet::kAvx2, InstructionSet::kAvx512}) {
        if (!cpu_supports(isa)) continue;
        for (const Setting& setting : settings) {
            SampledToken token;
            const SamplingArgs args{{logits.data(), 1, kVocabulary, kVocabulary}, kVocabulary, &setting.input, &token};
            cpu_op_table(isa).sample(context, args);
            const double seconds =
                bench::best_seconds(pool, kRepeats, [&] { cpu_op_table(isa).sample(context, args); });
            std::printf("%-8.*s %-30s %9.1f us\n", static_cast<int>(to_string(isa).size()), to_string(isa).data(),
                        setting.name, seconds * 1e6);
        }
    }
    return 0;
}
