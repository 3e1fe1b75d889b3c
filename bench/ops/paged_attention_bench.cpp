// paged_attention in decode and prefill, beside what the machine can do: decode is compared with the measured read
// bandwidth (every key and value is read once), prefill with the measured f32 multiply-add peak.
//
//   paged_attention_bench [--isa scalar|avx2|avx512] [--threads N] [--storage f32|bf16|int8] [--context N]
//
// Decode walks several layers' pages of together at least 192 MiB in turn, so that no cache keeps them.

#include "cpp/ops/paged_attention.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/ops/cpu/cpu_op_table.h"

namespace ninfer::bench {
namespace {

struct Shape {
    const char* name;
    std::int64_t heads;
    std::int64_t kv_heads;
    std::int64_t head_dim;
};
constexpr Shape kShapes[] = {{"SmolLM2-135M", 9, 3, 64}, {"hybrid 0.8B", 8, 2, 256}, {"dense 7B", 28, 4, 128}};
constexpr std::int64_t kContexts[] = {256, 1024, 4096, 16384};
constexpr std::size_t kColdBytes = std::size_t{192} << 20;

struct Options {
    InstructionSet isa = best_instruction_set();
    int threads = 2;
    std::string_view storage;
    std::int64_t context = 0;
};

struct Limits {
    double bandwidth = 0.0;
    double f32 = 0.0;
};

// `rows` last positions of one sequence of `context` tokens.
class AttentionRun {
   public:
    AttentionRun(const Options& options, KvStorage storage, const Shape& shape, std::int64_t context, std::int64_t rows)
        : ops_(cpu_op_table(options.isa)),
          shape_{shape.heads, shape.kv_heads, shape.head_dim, 0, shape.head_dim},
          layout_{storage, shape.kv_heads, shape.head_dim},
          context_(context),
          rows_(rows) {
        const std::int64_t pages = (context + kPageTokens - 1) / kPageTokens;
        const std::size_t layer_bytes = static_cast<std::size_t>(pages) * layout_.layer_bytes();
        layers_ = rows == 1 ? static_cast<std::int64_t>(kColdBytes / layer_bytes) + 1 : 1;
        pool_ = HostBuffer(static_cast<std::size_t>(layers_) * layer_bytes);
        std::uint32_t state = 1;
        for (std::size_t i = 0; i < pool_.size(); ++i) {
            state = state * 1664525U + 1013904223U;
            // Any two or four such bytes are a finite number below 1 in every format.
            pool_.data()[i] = static_cast<std::byte>((state >> 24) & 0x37U);
        }
        for (std::int64_t p = 0; p < pages; ++p) table_.push_back(static_cast<std::int32_t>(pages - 1 - p));
        query_.resize(static_cast<std::size_t>(rows * shape.heads * shape.head_dim));
        for (float& x : query_)
            x = static_cast<float>(static_cast<int>((state = state * 1664525U + 1013904223U) >> 16) - 32768) * 1e-4F;
        output_.resize(query_.size());
    }

    void operator()(OpContext& context) {
        layer_ = (layer_ + 1) % layers_;
        const auto pages = static_cast<std::int64_t>(table_.size());
        std::byte* const pool = pool_.data() + static_cast<std::size_t>(layer_ * pages) * layout_.layer_bytes();
        const KvSegment segment{{0, rows_, context_ - rows_},
                                {layout_, pool, layout_.layer_bytes(), table_.data(), pages}};
        const std::int64_t columns = shape_.heads * shape_.head_dim;
        ops_.paged_attention(context, {shape_,
                                       0.1F,
                                       {query_.data(), rows_, columns, columns},
                                       {output_.data(), rows_, columns, columns},
                                       &segment,
                                       1});
    }

    const AttentionShape& shape() const { return shape_; }
    // Of the keys, values and scales that must be read once.
    double bytes() const {
        return static_cast<double>(layout_.layer_bytes()) * static_cast<double>(context_) /
               static_cast<double>(kPageTokens);
    }
    // Multiply-adds of both products over the keys that each row sees.
    double operations() const {
        const auto keys =
            static_cast<double>(rows_) * (static_cast<double>(context_) - static_cast<double>(rows_ - 1) / 2.0);
        return 4.0 * keys * static_cast<double>(shape_.heads * shape_.head_dim);
    }

   private:
    const OpTable& ops_;
    AttentionShape shape_;
    KvLayerLayout layout_;
    std::int64_t context_;
    std::int64_t rows_;
    std::int64_t layers_ = 1;
    std::int64_t layer_ = 0;
    HostBuffer pool_;
    std::vector<std::int32_t> table_;
    std::vector<float> query_;
    std::vector<float> output_;
};

void report(const Options& options, const Limits& limits, KvStorage storage, const Shape& shape, std::int64_t context,
            std::int64_t rows) {
    ThreadPool pool(options.threads);
    AttentionRun run(options, storage, shape, context, rows);
    ScratchArena scratch(paged_attention_scratch_bytes(options.threads, run.shape()));
    OpContext op_context{pool, scratch};
    run(op_context);
    // Batches of a few calls, so that one clock reading covers at least about a millisecond.
    const double once = best_seconds(pool, 3, [&] { run(op_context); });
    const int calls = std::max(1, static_cast<int>(1e-3 / once));
    const int repeats = std::max(5, static_cast<int>(0.2 / (once * calls)));
    const double seconds = best_seconds(pool, repeats,
                                        [&] {
                                            for (int i = 0; i < calls; ++i) run(op_context);
                                        }) /
                           calls;
    const double bandwidth = run.bytes() / seconds;
    const double rate = run.operations() / seconds;
    std::printf("%-13s %-5s %4ld rows of %6ld  %10.1f us  %6.1f GB/s %5.0f %%  %7.1f GFLOP/s %5.0f %%\n", shape.name,
                to_string(storage).data(), static_cast<long>(rows), static_cast<long>(context), seconds * 1e6,
                bandwidth * 1e-9, 100 * bandwidth / limits.bandwidth, rate * 1e-9,
                limits.f32 > 0 ? 100 * rate / limits.f32 : 0.0);
    std::fflush(stdout);
}

Options parse(int count, char** arguments) {
    Options options;
    for (int i = 1; i + 1 < count; i += 2) {
        const std::string_view name = arguments[i];
        const char* const value = arguments[i + 1];
        if (name == "--isa") options.isa = instruction_set_from_string(value).value_or(options.isa);
        if (name == "--threads") options.threads = std::atoi(value);
        if (name == "--storage") options.storage = value;
        if (name == "--context") options.context = std::atol(value);
    }
    return options;
}

void run_all(const Options& options) {
    Limits limits;
    {
        ThreadPool pool(options.threads);
        limits = {read_bandwidth(pool), compute_peak(pool, options.isa).f32};
    }
    print_machine();
    std::printf("%s, %d threads; limits: read %.1f GB/s, f32 %.0f GFLOP/s (multiply-add = 2)\n",
                to_string(options.isa).data(), options.threads, limits.bandwidth * 1e-9, limits.f32 * 1e-9);
    for (const auto& shape : kShapes)
        for (const auto storage : {KvStorage::kF32, KvStorage::kBf16, KvStorage::kInt8})
            for (const auto context : kContexts) {
                if (!options.storage.empty() && options.storage != to_string(storage)) continue;
                if (options.context != 0 && options.context != context) continue;
                report(options, limits, storage, shape, context, 1);
                if (context <= 4096) report(options, limits, storage, shape, context, context < 512 ? context : 512);
            }
}

}  // namespace
}  // namespace ninfer::bench

int main(int count, char** arguments) { ninfer::bench::run_all(ninfer::bench::parse(count, arguments)); }
