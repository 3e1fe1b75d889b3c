#pragma once

// The harness of ops that touch each of their bytes once: time per row, bytes per second, and the share of what a plain
// copy of the same number of bytes reaches in the same run (in cache if they fit there, else from memory).

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "bench/support/machine.h"
#include "bench/support/machine_limits.h"
#include "cpp/ops/cpu/cpu_op_table.h"
#include "cpp/ops/op_context.h"
#include "cpp/tensor/matrix_view.h"

namespace ninfer::bench {

inline constexpr std::int64_t kRowCounts[] = {1, 8, 64, 512};

// A row-major f32 matrix of random values.
class RandomMatrix {
   public:
    RandomMatrix(std::int64_t rows, std::int64_t columns)
        : rows_(rows), columns_(columns), values_(static_cast<std::size_t>(rows * columns)) {
        std::mt19937 engine(7);
        std::normal_distribution<float> normal(0.0F, 1.0F);
        for (auto& value : values_) value = normal(engine);
    }
    MatrixView view() { return {values_.data(), rows_, columns_, columns_}; }
    float* data() { return values_.data(); }

   private:
    std::int64_t rows_;
    std::int64_t columns_;
    std::vector<float> values_;
};

// Seconds that reading and writing `bytes` in all takes as a plain copy.
inline double copy_seconds(ThreadPool& pool, std::int64_t bytes) {
    const std::int64_t half = bytes / 2 + 64;
    const std::int64_t blocks = pool.thread_count();
    std::vector<std::byte> from(static_cast<std::size_t>(half), std::byte{1});
    std::vector<std::byte> to(static_cast<std::size_t>(half));
    return best_seconds(pool, 50, [&] {
        pool.parallel_for(blocks, [&](std::int64_t block, int) {
            const std::int64_t begin = half * block / blocks;
            const std::int64_t end = half * (block + 1) / blocks;
            std::memcpy(to.data() + begin, from.data() + begin, static_cast<std::size_t>(end - begin));
        });
    });
}

// `make(rows)` prepares the operands and returns a callable run(ops, context); bytes_per_row is what the contract implies.
template <typename Make>
int bench_row_op(int argc, char** argv, const char* title, std::int64_t bytes_per_row, Make make) {
    const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
    ThreadPool pool(threads);
    ScratchArena scratch(std::size_t{256} << 20);
    OpContext context{pool, scratch};
    print_machine();
    std::printf("%s, %d thread(s), %lld bytes per row\n", title, threads, static_cast<long long>(bytes_per_row));
    for (const auto rows : kRowCounts) {
        auto run = make(rows);
        const double limit = copy_seconds(pool, rows * bytes_per_row);
        for (const auto isa : {InstructionSet::kAvx2, InstructionSet::kAvx512}) {
            if (!cpu_supports(isa)) continue;
            const double seconds = best_seconds(pool, 50, [&] { run(cpu_op_table(isa), context); });
            std::printf("  %-7s %4lld rows  %9.1f ns/row  %7.1f GB/s  %5.0f %% of a plain copy\n",
                        to_string(isa).data(), static_cast<long long>(rows), seconds * 1e9 / static_cast<double>(rows),
                        static_cast<double>(rows * bytes_per_row) / seconds * 1e-9, 100.0 * limit / seconds);
        }
    }
    return 0;
}

}  // namespace ninfer::bench
