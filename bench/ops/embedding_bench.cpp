// Rows of a q8 embedding table of 248,320 x 1,024: random rows, so the table comes from memory.

#include "bench/support/row_op_bench.h"

#include "cpp/memory/host_buffer.h"

int main(int argc, char** argv) {
    using namespace ninfer;
    static constexpr std::int64_t kVocabulary = 248320;
    static constexpr std::int64_t kColumns = 1024;
    WeightView table{nullptr, WeightStorage::kQ8, kVocabulary, kColumns};
    HostBuffer buffer(table.total_bytes());
    std::memset(buffer.data(), 1, buffer.size());
    table.data = buffer.data();
    // Reads 34 bytes per 32 weights, writes f32.
    return bench::bench_row_op(argc, argv, "embedding, q8, 1024 columns", kColumns * 34 / 32 + 4 * kColumns,
                               [&](std::int64_t rows) {
                                   std::vector<std::int32_t> ids(static_cast<std::size_t>(rows));
                                   std::mt19937 engine(3);
                                   for (auto& id : ids) id = static_cast<std::int32_t>(engine() % kVocabulary);
                                   return [&table, rows, ids, output = bench::RandomMatrix(rows, kColumns)](
                                              const OpTable& ops, OpContext& context) mutable {
                                       ops.embedding(context, {ids.data(), rows, table, output.view()});
                                   };
                               });
}
