#include "cpp/ops/linear.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/linear_inputs.h"
#include "cpp/ops/cpu/linear_kernels.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

// Below this many inputs one thread prepares them: waking the others costs more than the work.
constexpr std::int64_t kSerialPreparation = 16384;
// Activations of one block of rows stay in a core's cache while the panels stream past them.
constexpr std::int64_t kRowBlockBytes = 512 * 1024;
// A block is large enough to hide its claim and small enough that all threads end together.
constexpr std::int64_t kBlockBytes = 256 * 1024;
constexpr std::int64_t kBlocksPerThread = 8;

NINFER_INLINE std::int64_t ceil_divide(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
NINFER_INLINE std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }
NINFER_INLINE std::int64_t larger(std::int64_t a, std::int64_t b) { return a > b ? a : b; }

NINFER_INLINE bool is_quantised(WeightStorage storage) {
    return storage == WeightStorage::kQ8 || storage == WeightStorage::kQ4;
}

// Rows as one family of kernels reads them.
struct PreparedRows {
    const std::byte* data = nullptr;
    std::size_t row_bytes = 0;
};

struct PreparedInputs {
    PreparedRows f32;
    PreparedRows bf16;
    PreparedRows quantised;

    const PreparedRows& of(WeightStorage storage) const {
        return storage == WeightStorage::kF32 ? f32 : storage == WeightStorage::kBf16 ? bf16 : quantised;
    }
};

PreparedInputs prepare_inputs(OpContext& context, const LinearArgs& args) {
    const ConstMatrixView& input = args.input;
    bool rounds = false;
    bool quantises = false;
    for (std::int64_t t = 0; t < args.target_count; ++t) {
        rounds = rounds || args.targets[t].weight.storage == WeightStorage::kBf16;
        quantises = quantises || is_quantised(args.targets[t].weight.storage);
    }
    const std::int64_t groups = ceil_divide(input.columns, kQuantGroup);
    const std::int64_t even_columns = ceil_divide(input.columns, 2) * 2;
    Bf16Input* const rounded = rounds ? context.scratch.take<Bf16Input>(input.rows * even_columns) : nullptr;
    QuantisedGroup* const quantised = quantises ? context.scratch.take<QuantisedGroup>(input.rows * groups) : nullptr;
    if (rounds || quantises) {
        const bool serial = input.rows * input.columns <= kSerialPreparation;
        const std::int64_t rows_per_block = serial ? input.rows : 1;
        context.pool.parallel_for(ceil_divide(input.rows, rows_per_block), [&](std::int64_t block, int) {
            const std::int64_t end = smaller((block + 1) * rows_per_block, input.rows);
            for (std::int64_t row = block * rows_per_block; row < end; ++row) {
                if (rounds) round_row_to_bf16(input.row(row), input.columns, rounded + row * even_columns);
                if (quantises) quantise_row(input.row(row), input.columns, quantised + row * groups);
            }
        });
    }
    return {.f32 = {reinterpret_cast<const std::byte*>(input.data),
                    static_cast<std::size_t>(input.row_stride) * sizeof(float)},
            .bf16 = {reinterpret_cast<const std::byte*>(rounded),
                     static_cast<std::size_t>(even_columns) * sizeof(Bf16Input)},
            .quantised = {reinterpret_cast<const std::byte*>(quantised),
                          static_cast<std::size_t>(groups) * sizeof(QuantisedGroup)}};
}

// How rows and panels are cut into blocks. Blocks of panels run fastest, so that threads share a block of rows.
struct BlockPlan {
    std::int64_t rows_per_block = 1;
    std::int64_t panels_per_block = 1;
    std::int64_t row_blocks = 0;
    std::int64_t panel_blocks = 0;  // over all targets
};

NINFER_INLINE std::int64_t panel_blocks_of(const LinearTarget& target, const BlockPlan& plan) {
    return ceil_divide(target.weight.panels(), plan.panels_per_block);
}

BlockPlan plan_blocks(const LinearArgs& args, const PreparedInputs& inputs, int threads) {
    std::int64_t panels = 0;
    std::int64_t panel_bytes = 1;
    std::int64_t row_bytes = 1;
    for (std::int64_t t = 0; t < args.target_count; ++t) {
        const WeightView& weight = args.targets[t].weight;
        panels += weight.panels();
        panel_bytes = larger(panel_bytes, static_cast<std::int64_t>(weight.panel_bytes()));
        row_bytes = larger(row_bytes, static_cast<std::int64_t>(inputs.of(weight.storage).row_bytes));
    }
    BlockPlan plan;
    // 48 is a multiple of every kernel's row tile.
    const std::int64_t rows_in_cache = kRowBlockBytes / row_bytes;
    plan.rows_per_block = smaller(args.input.rows, larger(48, rows_in_cache / 48 * 48));
    plan.row_blocks = ceil_divide(args.input.rows, plan.rows_per_block);
    const std::int64_t even_share = panels / (threads * kBlocksPerThread);
    const std::int64_t wanted = smaller(even_share, kBlockBytes / panel_bytes);
    plan.panels_per_block = larger(2, wanted / 2 * 2);
    for (std::int64_t t = 0; t < args.target_count; ++t) plan.panel_blocks += panel_blocks_of(args.targets[t], plan);
    return plan;
}

std::int64_t kernel_steps(const WeightView& weight) {
    switch (weight.storage) {
        case WeightStorage::kF32:
            return weight.in_features;
        case WeightStorage::kBf16:
            return ceil_divide(weight.in_features, 2);
        case WeightStorage::kQ8:
        case WeightStorage::kQ4:
            return ceil_divide(weight.in_features, kQuantGroup);
    }
    NINFER_ASSERT(false, "unknown weight storage");
}

void run_kernel(WeightStorage storage, const LinearBlock& block) {
    switch (storage) {
        case WeightStorage::kF32:
            return linear_f32(block);
        case WeightStorage::kBf16:
            return linear_bf16(block);
        case WeightStorage::kQ8:
            return linear_q8(block);
        case WeightStorage::kQ4:
            return linear_q4(block);
    }
}

void run_block(const LinearArgs& args, const PreparedInputs& inputs, const BlockPlan& plan, std::int64_t index) {
    const std::int64_t row = index / plan.panel_blocks * plan.rows_per_block;
    std::int64_t panel_block = index % plan.panel_blocks;
    const LinearTarget* target = args.targets;
    for (; panel_block >= panel_blocks_of(*target, plan); ++target) panel_block -= panel_blocks_of(*target, plan);

    const WeightView& weight = target->weight;
    const PreparedRows& rows = inputs.of(weight.storage);
    const std::int64_t panel = panel_block * plan.panels_per_block;
    const LinearBlock block = {
        .weights = weight.panel(panel),
        .panel_bytes = weight.panel_bytes(),
        .scales_offset = weight.quant_bytes(),
        .panel_count = static_cast<std::size_t>(smaller(plan.panels_per_block, weight.panels() - panel)),
        .input = rows.data + static_cast<std::size_t>(row) * rows.row_bytes,
        .input_row_bytes = rows.row_bytes,
        .row_count = static_cast<std::size_t>(smaller(plan.rows_per_block, args.input.rows - row)),
        .steps = static_cast<std::size_t>(kernel_steps(weight)),
        .output = target->output.row(row) + panel * kPanelOutputs,
        .output_stride = target->output.row_stride,
        .columns = weight.out_features - panel * kPanelOutputs,
    };
    run_kernel(weight.storage, block);
}

void check_shapes(const LinearArgs& args) {
    for (std::int64_t t = 0; t < args.target_count; ++t) {
        const LinearTarget& target = args.targets[t];
        NINFER_ASSERT_EQ(target.weight.in_features, args.input.columns);
        NINFER_ASSERT_EQ(target.output.columns, target.weight.out_features);
        NINFER_ASSERT_EQ(target.output.rows, args.input.rows);
        NINFER_ASSERT_EQ(reinterpret_cast<std::uintptr_t>(target.weight.data) % 64, 0);
    }
}

}  // namespace

void linear(OpContext& context, const LinearArgs& args) {
    check_shapes(args);
    if (args.input.rows == 0 || args.target_count == 0) return;
    const ScratchArena::Scope scope(context.scratch);
    const PreparedInputs inputs = prepare_inputs(context, args);
    const BlockPlan plan = plan_blocks(args, inputs, context.pool.thread_count());
    context.pool.parallel_for(plan.row_blocks * plan.panel_blocks,
                              [&](std::int64_t index, int) { run_block(args, inputs, plan, index); });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
