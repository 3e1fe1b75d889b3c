#include "cpp/ops/sampling.h"

#include "cpp/ops/cpu/isa_op_table.h"
#include "cpp/ops/cpu/logit_scan.h"
#include "cpp/ops/cpu/sampling_row.h"
#include "cpp/ops/philox.h"

namespace ninfer::NINFER_ISA_NAMESPACE {

namespace {

struct TokenRange {
    std::int64_t begin;
    std::int64_t end;
};

TokenRange block_range(std::int64_t block, std::int64_t tokens) {
    const std::int64_t begin = block * kBlockTokens;
    return {begin, begin + kBlockTokens < tokens ? begin + kBlockTokens : tokens};
}

void mask_block(const std::uint32_t* mask, float* logits, TokenRange range) {
    constexpr std::int64_t kWordTokens = 32;
    for (std::int64_t first = range.begin; first < range.end; first += kWordTokens) {
        const std::uint32_t forbidden = ~mask[first / kWordTokens];
        if (forbidden == 0) continue;
        const std::int64_t end = first + kWordTokens < range.end ? first + kWordTokens : range.end;
        for (std::int64_t id = first; id < end; ++id)
            if (((forbidden >> (id - first)) & 1U) != 0) logits[id] = kMinusInfinity;
    }
}

void penalise_block(const SamplerInput& input, float* logits, TokenRange range) {
    if (input.repetition_penalty != 1.0F)
        for (std::int64_t id = range.begin; id < range.end; ++id)
            if (input.seen_counts[id] > 0)
                logits[id] =
                    logits[id] > 0.0F ? logits[id] / input.repetition_penalty : logits[id] * input.repetition_penalty;
    if (input.frequency_penalty == 0.0F && input.presence_penalty == 0.0F) return;
    for (std::int64_t id = range.begin; id < range.end; ++id)
        if (input.output_counts[id] > 0) {
            logits[id] -= input.frequency_penalty * static_cast<float>(input.output_counts[id]);
            logits[id] -= input.presence_penalty;
        }
}

// Writes the block's adjusted logits: mask, then bias, then penalties.
void adjust_block(const SamplingRow& row, TokenRange range) {
    const SamplerInput& input = *row.input;
    float* logits = row.adjusted_logits;
    for (std::int64_t id = range.begin; id < range.end; ++id) logits[id] = row.model.logits[id];
    if (input.token_mask != nullptr) mask_block(input.token_mask, logits, range);
    for (std::int64_t i = 0; i < input.bias_count; ++i)
        if (input.bias[i].id >= range.begin && input.bias[i].id < range.end)
            logits[input.bias[i].id] += input.bias[i].value;
    penalise_block(input, logits, range);
}

void find_group_maxima(const Distribution& distribution, TokenRange range) {
    for (std::int64_t first = range.begin; first < range.end; first += kGroupTokens) {
        const std::int64_t left = range.end - first;
        distribution.group_maxima[first / kGroupTokens] =
            group_maximum(distribution.logits + first, left < kGroupTokens ? left : kGroupTokens);
    }
}

void scan_block(const SamplingRow& row, std::int64_t block) {
    const TokenRange range = block_range(block, row.tokens);
    const bool adjusted = is_adjusted(*row.input);
    if (adjusted) {
        adjust_block(row, range);
        find_group_maxima(row.adjusted, range);
    }
    if (!adjusted || row.input->logprobs >= 0) find_group_maxima(row.model, range);
}

float largest_of_groups(const Distribution& distribution, std::int64_t tokens) {
    float best = kMinusInfinity;
    for (std::int64_t group = 0; group < group_count(tokens); ++group)
        if (distribution.group_maxima[group] > best) best = distribution.group_maxima[group];
    return best;
}

void find_best(SamplingRow& row) {
    if (!is_adjusted(*row.input) || row.input->logprobs >= 0) row.model.best = largest_of_groups(row.model, row.tokens);
    row.adjusted.best = is_adjusted(*row.input) ? largest_of_groups(row.adjusted, row.tokens) : row.model.best;
}

// min_p applies to what top_p has kept: it cannot lower the total that top_p refers to.
Softmax draw_softmax(const SamplingRow& row) {
    return {row.adjusted.best, row.input->temperature, has_top_p(*row.input) ? 0.0F : row.input->min_p};
}

Softmax model_softmax(const SamplingRow& row) { return {row.model.best, 1.0F, 0.0F}; }

bool needs_draw_masses(const SamplingRow& row) {
    return !is_greedy(*row.input) && !has_top_k(*row.input, row.tokens) && row.adjusted.best > kMinusInfinity;
}

bool needs_model_masses(const SamplingRow& row) { return row.input->logprobs >= 0 && row.model.best > kMinusInfinity; }

void weigh_block(const SamplingRow& row, std::int64_t block) {
    const TokenRange range = block_range(block, row.tokens);
    const std::int64_t count = range.end - range.begin;
    if (needs_draw_masses(row))
        row.adjusted.block_masses[block] = total_mass(row.adjusted.logits + range.begin, count, draw_softmax(row));
    if (needs_model_masses(row))
        row.model.block_masses[block] = total_mass(row.model.logits + range.begin, count, model_softmax(row));
}

std::uint64_t sum_of_blocks(const Distribution& distribution, std::int64_t tokens) {
    std::uint64_t total = 0;
    for (std::int64_t block = 0; block < block_count(tokens); ++block) total += distribution.block_masses[block];
    return total;
}

// floor(u · total / 2^64) for the row's u: below total.
std::uint64_t drawn_mass(const SamplerInput& input, std::uint64_t total) {
    NINFER_ASSERT(total > 0, "a draw from nothing");
    using Wide = unsigned __int128;
    return static_cast<std::uint64_t>((Wide{philox_bits(input.seed, input.output_index)} * total) >> 64);
}

std::int32_t best_token(const SamplingRow& row) {
    std::int64_t group = 0;
    while (row.adjusted.group_maxima[group] != row.adjusted.best) ++group;
    std::int64_t id = group * kGroupTokens;
    while (row.adjusted.logits[id] != row.adjusted.best) ++id;
    NINFER_ASSERT_LT(id, row.tokens);
    return static_cast<std::int32_t>(id);
}

// Neither top_k nor top_p: the block that holds the drawn mass, then the token in it.
std::int32_t draw_from_all(const SamplingRow& row) {
    std::uint64_t left = drawn_mass(*row.input, sum_of_blocks(row.adjusted, row.tokens));
    std::int64_t block = 0;
    for (; left >= row.adjusted.block_masses[block]; ++block) left -= row.adjusted.block_masses[block];
    const TokenRange range = block_range(block, row.tokens);
    for (std::int64_t id = range.begin; id < range.end; id += kLanes) {
        float weights[kLanes];
        store(weights, weights_of(load_logits(row.adjusted.logits + id, range.end - id), draw_softmax(row)));
        for (int lane = 0; lane < kLanes; ++lane) {
            const std::uint64_t mass = mass_of(weights[lane]);
            if (left < mass) return static_cast<std::int32_t>(id + lane);
            left -= mass;
        }
    }
    NINFER_ASSERT(false, "the block's mass is not that of its tokens");
}

// The least integer that is at least top_p · total. top_p · 2^63 is exact from 2^-40 on.
std::uint64_t nucleus_mass(float top_p, std::uint64_t total) {
    using Wide = unsigned __int128;
    const auto scaled = static_cast<std::uint64_t>(static_cast<std::int64_t>(static_cast<double>(top_p) * 0x1p63));
    const Wide product = Wide{scaled} * total;
    return static_cast<std::uint64_t>((product + ((Wide{1} << 63) - 1)) >> 63);
}

// A logit below which lies too little mass to be in the nucleus: all tokens with at most a fourth of the mean of what
// the nucleus may leave out together weigh less than that. A fourth, because the bound is rounded.
float nucleus_bound(const SamplingRow& row, std::uint64_t total) {
    const std::uint64_t left_out = total - nucleus_mass(row.input->top_p, total);
    const std::uint64_t whole_mean = left_out / static_cast<std::uint64_t>(row.tokens);
    const auto mean = static_cast<float>(whole_mean);
    if (mean < 8.0F) return -FLT_MAX;
    return row.adjusted.best + row.input->temperature * log(mean * 0.25F / kMassUnit);
}

// Candidates and how many of the best of them top_k and top_p keep.
std::int64_t keep_candidates(SamplingRow& row) {
    CandidateSet& set = row.candidates;
    const bool top_k = has_top_k(*row.input, row.tokens);
    std::uint64_t total = 0;
    float bound = 0.0F;
    if (top_k) {
        bound = bound_of_largest(row.adjusted, row.tokens, row.input->top_k, set);
    } else {
        total = sum_of_blocks(row.adjusted, row.tokens);
        bound = nucleus_bound(row, total);
    }
    // Logits of -inf are forbidden, whatever the bound.
    collect_candidates(row.adjusted, row.tokens, bound > -FLT_MAX ? bound : -FLT_MAX, set);
    weigh_candidates(set, {row.adjusted.best, row.input->temperature, 0.0F});
    sort_candidates(set);
    std::int64_t kept = top_k && row.input->top_k < set.count ? row.input->top_k : set.count;
    if (!has_top_p(*row.input)) return kept;
    if (top_k)
        for (std::int64_t i = 0; i < kept; ++i) total += mass_of(set.weights[set.order[i]]);
    const std::uint64_t target = nucleus_mass(row.input->top_p, total);
    std::uint64_t reached = 0;
    for (std::int64_t i = 0; i < kept; ++i) {
        reached += mass_of(set.weights[set.order[i]]);
        if (reached >= target) kept = i + 1;
    }
    return kept;
}

// Zeroes the weights of candidates that a filter drops; returns the mass of the others.
std::uint64_t drop_candidates(CandidateSet& set, std::int64_t kept, float min_p) {
    for (std::int64_t i = kept; i < set.count; ++i) set.weights[set.order[i]] = 0.0F;
    std::uint64_t total = 0;
    for (std::int64_t i = 0; i < set.count; ++i) {
        if (set.weights[i] < min_p) set.weights[i] = 0.0F;
        total += mass_of(set.weights[i]);
    }
    return total;
}

std::int32_t draw_from_candidates(SamplingRow& row) {
    const std::int64_t kept = keep_candidates(row);
    const CandidateSet& set = row.candidates;
    std::uint64_t left = drawn_mass(*row.input, drop_candidates(row.candidates, kept, row.input->min_p));
    std::int64_t i = 0;
    for (; left >= mass_of(set.weights[i]); ++i) left -= mass_of(set.weights[i]);
    NINFER_ASSERT_LT(i, set.count);
    return set.ids[i];
}

std::int32_t choose_token(SamplingRow& row) {
    if (row.adjusted.best == kMinusInfinity) return -1;
    if (is_greedy(*row.input)) return best_token(row);
    if (has_top_k(*row.input, row.tokens) || has_top_p(*row.input)) return draw_from_candidates(row);
    return draw_from_all(row);
}

float logprob_of(const SamplingRow& row, float logit, float log_normaliser) {
    if (!(logit > kMinusInfinity)) return kImpossibleLogprob;
    const float distance = logit < row.model.best ? logit - row.model.best : 0.0F;
    const float logprob = distance - log_normaliser;
    return logprob > kMinusInfinity ? logprob : kImpossibleLogprob;
}

void report_logprobs(SamplingRow& row, SampledToken& output) {
    float log_normaliser = 0.0F;
    if (row.model.best > kMinusInfinity)
        log_normaliser =
            log(static_cast<float>(static_cast<std::int64_t>(sum_of_blocks(row.model, row.tokens))) / kMassUnit);
    output.logprob = output.id < 0 ? kImpossibleLogprob : logprob_of(row, row.model.logits[output.id], log_normaliser);
    const std::int64_t wanted = row.input->logprobs < row.tokens ? row.input->logprobs : row.tokens;
    output.top_count = static_cast<std::int32_t>(wanted);
    if (wanted == 0) return;
    CandidateSet& set = row.candidates;
    collect_candidates(row.model, row.tokens, bound_of_largest(row.model, row.tokens, wanted, set), set);
    sort_candidates(set);
    for (std::int64_t i = 0; i < wanted; ++i) {
        output.top_ids[i] = set.ids[set.order[i]];
        output.top_logprobs[i] = logprob_of(row, set.logits[set.order[i]], log_normaliser);
    }
}

void finish_row(SamplingRow& row, SampledToken& output) {
    output = SampledToken{};
    output.id = choose_token(row);
    if (row.input->logprobs >= 0) report_logprobs(row, output);
}

}  // namespace

void sample(OpContext& context, const SamplingArgs& args) {
    NINFER_ASSERT_LT(0, args.valid_tokens);
    NINFER_ASSERT_LE(args.valid_tokens, args.logits.columns);
    const ScratchArena::Scope scope(context.scratch);
    const std::int64_t row_count = args.logits.rows;
    SamplingRow* rows = context.scratch.take<SamplingRow>(row_count);
    bool any_masses = false;
    for (std::int64_t r = 0; r < row_count; ++r) {
        check_sampler_input(args.inputs[r], args.valid_tokens);
        rows[r] = take_sampling_row(context.scratch, args, r);
        any_masses = any_masses || args.inputs[r].logprobs >= 0 || !is_greedy(args.inputs[r]);
    }
    const std::int64_t blocks = block_count(args.valid_tokens);
    context.pool.parallel_for(row_count * blocks,
                              [&](std::int64_t task, int) { scan_block(rows[task / blocks], task % blocks); });
    context.pool.parallel_for(row_count, [&](std::int64_t row, int) { find_best(rows[row]); });
    if (any_masses)
        context.pool.parallel_for(row_count * blocks,
                                  [&](std::int64_t task, int) { weigh_block(rows[task / blocks], task % blocks); });
    context.pool.parallel_for(row_count, [&](std::int64_t row, int) { finish_row(rows[row], args.outputs[row]); });
}

}  // namespace ninfer::NINFER_ISA_NAMESPACE
