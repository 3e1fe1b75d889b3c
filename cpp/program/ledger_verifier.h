#pragma once

// Exact verification: how far a prompt and ledgers have the same identity. Header, ids, types, positions and media are
// compared themselves, never their digests.
//
// A run that many candidates share is compared once per call, and candidates of one ledger are answered together: the
// cost is that of the distinct runs, about one memcmp of the prompt where candidates share their history. A call
// allocates nothing once the memory of earlier ones is large enough.

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/program/ledger_store.h"
#include "cpp/program/prompt_view.h"

namespace ninfer {

struct LedgerCandidate {
    LedgerId ledger;
    std::int64_t frontier = 0;
};

// What first differs; kNone if one of the two ends first.
enum class Difference : std::uint8_t { kNone, kSalt, kMode, kRopeDelta, kToken, kType, kPosition, kMedia };

struct Verification {
    std::int64_t matched = 0;  // longest common prefix of prompt and ledger, in tokens; 0 if headers differ
    Difference difference = Difference::kNone;
    bool exact = false;  // equal headers, and matched >= the candidate's frontier
};

class LedgerVerifier {
   public:
    // The store must outlive it.
    explicit LedgerVerifier(const LedgerStore& store) : store_(store) {}

    // One verification per candidate. kStaleHandle, kBeyondFrontier (wanted: frontier, found: the ledger's length).
    Result<Nothing, Refusal> verify(const PromptView& prompt, std::span<const LedgerCandidate> candidates,
                                    std::span<Verification> verifications);

   private:
    // How far prompt and chain agree up to the end of a run, if `call` is the current one.
    struct Memo {
        std::uint64_t call = 0;
        std::int64_t matched = 0;
        Difference difference = Difference::kNone;
    };

    Memo match_chain(const PromptView& prompt, RunId last);
    Memo match_run(const PromptView& prompt, const LedgerStore::Runs::Run& run) const;
    Memo& memo_of(RunId id);

    const LedgerStore& store_;
    std::uint64_t call_ = 0;
    std::vector<Memo> memos_;  // by run
    std::vector<RunId> path_;
};

}  // namespace ninfer
