#include "cpp/program/candidate_verification.h"

#include <algorithm>

#include "cpp/program/sequence_opening.h"

namespace ninfer {

namespace {

// The tokens that the checkpoint saves, 0 for none.
std::int64_t usable_tokens(const ContextState& state, const Checkpoint& checkpoint, const Verification& verified,
                           std::int64_t prompt_tokens) {
    if (checkpoint.awaits_image) return 0;
    const std::int64_t most = std::min(checkpoint.frontier, prompt_tokens - 1);
    if (!state.stores.has_images()) return std::min(most, verified.matched);
    return verified.exact && most == checkpoint.frontier ? most : 0;
}

bool is_legal(const ContextState& state, const Checkpoint& checkpoint, SourceUse use) {
    return use == SourceUse::kRetain || !check_takeover(state, checkpoint.owner);
}

}  // namespace

Result<std::vector<AdmissionCandidate>, Refusal> verify_candidates(ContextState& state, const PromptView& prompt,
                                                                   std::span<const CandidateSource> sources) {
    const auto prompt_tokens = std::ssize(prompt.tokens);
    NINFER_ASSERT_LE(1, prompt_tokens);
    std::vector<LedgerCandidate> ledgers;
    for (const CandidateSource& source : sources) {
        const auto found = state.owners.find(source.checkpoint);
        if (!found) return found.error();
        ledgers.push_back({found.value()->ledger, found.value()->frontier});
    }
    std::vector<Verification> verified(ledgers.size());
    if (const auto done = state.stores.verifier().verify(prompt, ledgers, verified); !done) return done.error();

    std::vector<AdmissionCandidate> candidates(1);
    candidates.front().prompt_tokens = prompt_tokens;
    for (std::size_t i = 0; i < sources.size(); ++i) {
        const Checkpoint& checkpoint = *state.owners.find(sources[i].checkpoint).value();
        const std::int64_t frontier = usable_tokens(state, checkpoint, verified[i], prompt_tokens);
        if (frontier < 1 || !is_legal(state, checkpoint, sources[i].use)) continue;
        const bool truncated = frontier < checkpoint.frontier;
        const bool consumed = truncated && sources[i].use == SourceUse::kContinue;
        candidates.push_back({.source = sources[i].checkpoint,
                              .use = consumed ? SourceUse::kConsume : sources[i].use,
                              .frontier = frontier,
                              .prompt_tokens = prompt_tokens,
                              .truncated = truncated});
    }
    return candidates;
}

}  // namespace ninfer
