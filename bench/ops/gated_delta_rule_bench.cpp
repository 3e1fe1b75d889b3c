// Gated delta rule at the Qwen3.5-0.8B shape: 16 value heads of 128 x 128, 18 layers.
//
//   gated_delta_rule_bench [threads]
//
// Per token and head the kernel must do 4 multiply-adds or multiplications per state value (decay, k^T S, k delta^T,
// q^T S) and, with the tile in L1, load and store each value once (a call of one row: twice). Gop/s counts those 4; it
// stands beside lanes x 2 pipes x clock of the core.

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/base/cpu_features.h"
#include "cpp/ops/cpu/cpu_op_table.h"
#include "cpp/ops/op_context.h"

namespace ninfer {
namespace {

constexpr int kLayers = 18;
constexpr double kOperationsPerValue = 4.0;
constexpr int kRepeats = 7;

std::vector<float> ramp(std::int64_t count, float scale) {
    std::vector<float> values(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = (static_cast<float>(i * 7919 % 1000) / 500.0F - 1.0F) * scale;
    return values;
}

struct Buffers {
    Buffers(const RecurrentStateLayout& layout, std::int64_t rows)
        : qkv(ramp(rows * layout.conv_channels(), 1.0F)),
          a(ramp(rows * layout.value_heads, 1.0F)),
          b(ramp(rows * layout.value_heads, 1.0F)),
          rate(ramp(layout.value_heads, 0.0F)),
          bias(ramp(layout.value_heads, 1.0F)),
          output(static_cast<std::size_t>(rows * layout.value_heads * layout.value_dim)),
          state(ramp(layout.recurrent_floats(), 0.1F)) {
        for (auto& value : rate) value = 0.05F;
    }
    std::vector<float> qkv, a, b, rate, bias, output, state;
};

double seconds_per_call(const OpTable& ops, int threads, const RecurrentStateLayout& layout, std::int64_t rows) {
    Buffers buffers(layout, rows);
    ThreadPool pool(threads);
    ScratchArena scratch(gated_delta_rule_scratch_bytes(rows, layout));
    OpContext context{pool, scratch};
    const RecurrentSegment segment{{0, rows, 0}, {buffers.state.data(), buffers.state.data()}};
    const std::int64_t heads = layout.value_heads;
    const GatedDeltaRuleArgs args{
        .layout = layout,
        .qkv = {buffers.qkv.data(), rows, layout.conv_channels(), layout.conv_channels()},
        .a = {buffers.a.data(), rows, heads, heads},
        .b = {buffers.b.data(), rows, heads, heads},
        .decay_rate = buffers.rate.data(),
        .dt_bias = buffers.bias.data(),
        .output = {buffers.output.data(), rows, heads * layout.value_dim, heads * layout.value_dim},
        .segments = &segment,
        .segment_count = 1,
    };
    ops.gated_delta_rule(context, args);
    return bench::best_seconds(pool, kRepeats, [&] { ops.gated_delta_rule(context, args); });
}

}  // namespace
}  // namespace ninfer

int main(int argc, char** argv) {
    using namespace ninfer;
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    const RecurrentStateLayout layout{
        .value_heads = 16, .key_heads = 16, .key_dim = 128, .value_dim = 128, .conv_width = 4};
    const double values = static_cast<double>(layout.head_floats());
    bench::print_machine();
    std::printf("gated_delta_rule, 16 heads of 128 x 128, %d thread(s), fastest of %d\n", threads, kRepeats);
    std::printf("%-8s %6s %16s %20s %12s %14s\n", "isa", "rows", "ns/(token,head)", "ms/token, 18 layers", "Gop/s",
                "L1 GB/s");
    for (const auto isa : {InstructionSet::kScalar, InstructionSet::kAvx2, InstructionSet::kAvx512}) {
        if (!cpu_supports(isa)) continue;
        for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{8}, std::int64_t{64}, std::int64_t{512}}) {
            if (isa == InstructionSet::kScalar && rows > 64) continue;
            const double seconds = seconds_per_call(cpu_op_table(isa), threads, layout, rows);
            const double per_head = seconds / static_cast<double>(rows * layout.value_heads);
            const double passes = rows == 1 ? 2.0 : 1.0;
            std::printf("%-8.*s %6ld %16.1f %20.3f %12.1f %14.1f\n", static_cast<int>(to_string(isa).size()),
                        to_string(isa).data(), static_cast<long>(rows), per_head * 1e9,
                        per_head * static_cast<double>(layout.value_heads) * kLayers * 1e3,
                        values * kOperationsPerValue / per_head / 1e9, values * 8.0 * passes / per_head / 1e9);
        }
    }
    return 0;
}
