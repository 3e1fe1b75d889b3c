// linear at the shapes of SmolLM2-135M and of a 0.8B hybrid, beside what the machine can do: few rows are compared with
// the measured read bandwidth, many with the measured multiply-add peak of the storage's instruction.
//
//   linear_bench [--isa scalar|avx2|avx512] [--threads N] [--storage f32|bf16|q8|q4] [--rows M] [--quick]
//
// Weights of one shape are held in several copies of together 192 MiB, used in turn, so that no cache keeps them.

#include "cpp/ops/linear.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/ops/cpu/cpu_op_table.h"

namespace ninfer::bench {
namespace {

struct Shape {
    std::int64_t in;
    std::int64_t out;
};
constexpr Shape kShapes[] = {{576, 576},   {576, 192},   {576, 1536},  {1536, 576},   {576, 49152},
                             {1024, 6144}, {1024, 3584}, {3584, 1024}, {1024, 248320}};
constexpr Shape kQuickShapes[] = {{576, 1536}, {1536, 576}, {1024, 6144}, {3584, 1024}};
constexpr std::int64_t kRows[] = {1, 8, 64, 512};
constexpr std::size_t kColdBytes = std::size_t{192} << 20;

struct Options {
    InstructionSet isa = best_instruction_set();
    int threads = 2;
    std::string_view storage;
    std::int64_t rows = 0;
    bool quick = false;
};

struct Limits {
    double bandwidth = 0.0;
    ComputePeak peak;
    double peak_of(WeightStorage storage) const {
        return storage == WeightStorage::kF32 ? peak.f32 : storage == WeightStorage::kBf16 ? peak.bf16 : peak.int8;
    }
};

class LinearRun {
   public:
    LinearRun(const Options& options, WeightStorage storage, Shape shape, std::int64_t rows)
        : ops_(cpu_op_table(options.isa)), view_{nullptr, storage, shape.out, shape.in}, rows_(rows) {
        copies_ = std::max<std::size_t>(1, kColdBytes / view_.total_bytes());
        weights_ = HostBuffer(copies_ * view_.total_bytes());
        std::uint32_t state = 1;
        for (std::size_t i = 0; i < weights_.size(); ++i) {
            state = state * 1664525U + 1013904223U;
            // Any two or four such bytes are a finite float in every format.
            weights_.data()[i] = static_cast<std::byte>((state >> 24) & 0x37U);
        }
        input_.resize(static_cast<std::size_t>(rows * shape.in));
        for (float& x : input_)
            x = static_cast<float>(static_cast<int>((state = state * 1664525U + 1013904223U) >> 16) - 32768) * 1e-4F;
        output_.resize(static_cast<std::size_t>(rows * shape.out));
    }

    void operator()(OpContext& context) {
        next_ = (next_ + 1) % copies_;
        WeightView weight = view_;
        weight.data = weights_.data() + next_ * view_.total_bytes();
        const LinearTarget target{weight, {output_.data(), rows_, view_.out_features, view_.out_features}};
        ops_.linear(context, {{input_.data(), rows_, view_.in_features, view_.in_features}, &target, 1});
    }

    double bytes() const { return static_cast<double>(view_.total_bytes()); }
    double operations() const { return 2.0 * static_cast<double>(rows_ * view_.in_features * view_.out_features); }

   private:
    const OpTable& ops_;
    WeightView view_;
    std::int64_t rows_;
    std::size_t copies_ = 1;
    std::size_t next_ = 0;
    HostBuffer weights_;
    std::vector<float> input_;
    std::vector<float> output_;
};

void report(const Options& options, const Limits& limits, WeightStorage storage, Shape shape, std::int64_t rows) {
    ThreadPool pool(options.threads);
    ScratchArena scratch(linear_scratch_bytes(rows, shape.in, storage));
    OpContext context{pool, scratch};
    LinearRun run(options, storage, shape, rows);
    run(context);
    // Few calls per clock reading: a short reading has a chance to be undisturbed by other programs.
    const double once = best_seconds(pool, 3, [&] { run(context); });
    const int calls = std::max(1, static_cast<int>(1e-4 / once));
    const int repeats = std::max(5, static_cast<int>(0.2 / (once * calls)));
    const double seconds = best_seconds(pool, repeats,
                                        [&] {
                                            for (int i = 0; i < calls; ++i) run(context);
                                        }) /
                           calls;
    const double bandwidth = run.bytes() / seconds;
    const double rate = run.operations() / seconds;
    const double peak = limits.peak_of(storage);
    std::printf("%-5s %5ld x %4ld -> %6ld  %10.1f us  %6.1f GB/s %5.0f %%  %7.1f GOPS %5.0f %%\n",
                to_string(storage).data(), static_cast<long>(rows), static_cast<long>(shape.in),
                static_cast<long>(shape.out), seconds * 1e6, bandwidth * 1e-9, 100 * bandwidth / limits.bandwidth,
                rate * 1e-9, peak > 0 ? 100 * rate / peak : 0.0);
    std::fflush(stdout);
}

Options parse(int count, char** arguments) {
    Options options;
    for (int i = 1; i < count; ++i) {
        const std::string_view name = arguments[i];
        const char* const value = i + 1 < count ? arguments[i + 1] : "";
        if (name == "--quick") {
            options.quick = true;
            continue;
        }
        if (name == "--isa") options.isa = instruction_set_from_string(value).value_or(options.isa);
        if (name == "--threads") options.threads = std::atoi(value);
        if (name == "--storage") options.storage = value;
        if (name == "--rows") options.rows = std::atol(value);
        ++i;
    }
    return options;
}

void run_all(const Options& options) {
    Limits limits;
    {
        ThreadPool pool(options.threads);
        limits = {read_bandwidth(pool), compute_peak(pool, options.isa)};
    }
    print_machine();
    std::printf("%s, %d threads; limits: read %.1f GB/s, int8 %.0f GOPS, bf16 %.0f, f32 %.0f (multiply-add = 2)\n",
                to_string(options.isa).data(), options.threads, limits.bandwidth * 1e-9, limits.peak.int8 * 1e-9,
                limits.peak.bf16 * 1e-9, limits.peak.f32 * 1e-9);
    const auto* const begin = options.quick ? std::begin(kQuickShapes) : std::begin(kShapes);
    const auto* const end = options.quick ? std::end(kQuickShapes) : std::end(kShapes);
    for (const auto storage : {WeightStorage::kF32, WeightStorage::kBf16, WeightStorage::kQ8, WeightStorage::kQ4})
        for (const auto rows : kRows)
            for (const auto* shape = begin; shape != end; ++shape) {
                const bool wanted = (options.storage.empty() || options.storage == to_string(storage)) &&
                                    (options.rows == 0 || options.rows == rows);
                // The LM head is computed for the last rows only.
                if (wanted && (rows <= 8 || shape->out < 40000)) report(options, limits, storage, *shape, rows);
            }
}

}  // namespace
}  // namespace ninfer::bench

int main(int count, char** arguments) { ninfer::bench::run_all(ninfer::bench::parse(count, arguments)); }
