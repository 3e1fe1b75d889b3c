#include "cpp/ops/causal_conv1d.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/simd/math.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

constexpr std::int64_t kMaxWidth = 8;
// Channels of one task: the rows of a window stay in L1 while they serve as taps.
constexpr std::int64_t kTaskChannels = 256;

struct ChannelRange {
    std::int64_t begin;
    std::int64_t count;
};

// Where x[t - (W-1) + j] lies for j = 0 .. W-1, already advanced to the first channel.
struct Taps {
    const float* x[kMaxWidth];
};

Taps taps_of_row(const CausalConv1dArgs& args, const ConvSegment& segment, std::int64_t t, std::int64_t channel) {
    Taps taps;
    for (std::int64_t j = 0; j < args.width; ++j) {
        const std::int64_t source = t - (args.width - 1) + j;
        taps.x[j] = source >= 0 ? args.input.row(segment.rows.row_begin + source) + channel
                                : segment.history_read + (t + j) * args.input.columns + channel;
    }
    return taps;
}

void convolve_row(const CausalConv1dArgs& args, const Taps& taps, ChannelRange channels, float* output) {
    const float* weight = args.weight + channels.begin;
    std::int64_t c = 0;
    for (; c + kLanes <= channels.count; c += kLanes) {
        F32x16 sum = zero();
        for (std::int64_t j = 0; j < args.width; ++j)
            sum = fma(load(weight + j * args.input.columns + c), load(taps.x[j] + c), sum);
        store(output + c, silu(sum));
    }
    const std::int64_t tail = channels.count - c;
    if (tail == 0) return;
    F32x16 sum = zero();
    for (std::int64_t j = 0; j < args.width; ++j)
        sum = fma(load_n(weight + j * args.input.columns + c, tail), load_n(taps.x[j] + c, tail), sum);
    store_n(output + c, silu(sum), tail);
}

// Ascending, so that an in-place history is read before it is overwritten: row j comes from row j + rows of the old
// one.
void carry_history(const CausalConv1dArgs& args, const ConvSegment& segment, ChannelRange channels) {
    const std::int64_t rows = segment.rows.row_count;
    for (std::int64_t j = 0; j < args.width - 1; ++j) {
        const std::int64_t source = rows - (args.width - 1) + j;
        const float* from = source >= 0 ? args.input.row(segment.rows.row_begin + source)
                                        : segment.history_read + (rows + j) * args.input.columns;
        float* to = segment.history_write + j * args.input.columns;
        for (std::int64_t c = channels.begin; c < channels.begin + channels.count; ++c) to[c] = from[c];
    }
}

void convolve(const CausalConv1dArgs& args, const ConvSegment& segment, ChannelRange channels) {
    for (std::int64_t t = 0; t < segment.rows.row_count; ++t)
        convolve_row(args, taps_of_row(args, segment, t, channels.begin), channels,
                     args.output.row(segment.rows.row_begin + t) + channels.begin);
    carry_history(args, segment, channels);
}

}  // namespace

void causal_conv1d(OpContext& context, const CausalConv1dArgs& args) {
    NINFER_ASSERT_LE(1, args.width);
    NINFER_ASSERT_LE(args.width, kMaxWidth);
    NINFER_ASSERT_EQ(args.output.columns, args.input.columns);
    NINFER_ASSERT(args.output.data != args.input.data || args.input.data == nullptr,
                  "taps are read after outputs are written");
    for (std::int64_t s = 0; s < args.segment_count; ++s) {
        const RowSegment& rows = args.segments[s].rows;
        NINFER_ASSERT_LE(rows.row_begin + rows.row_count, args.input.rows);
        NINFER_ASSERT_LE(rows.row_begin + rows.row_count, args.output.rows);
    }
    const std::int64_t channels = args.input.columns;
    const std::int64_t tasks = (channels + kTaskChannels - 1) / kTaskChannels;
    context.pool.parallel_for(args.segment_count * tasks, [&](std::int64_t block, int) {
        const std::int64_t begin = block % tasks * kTaskChannels;
        const std::int64_t left = channels - begin;
        convolve(args, args.segments[block / tasks], {begin, left < kTaskChannels ? left : kTaskChannels});
    });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
