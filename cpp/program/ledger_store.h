#pragma once

// The identity of every sequence, owner and checkpoint: which tokens, of which type, at which positions, of which media,
// under which header. Ledgers that begin alike share their beginnings as runs (cpp/state/shared_runs.h).
//
// Life of a ledger: 1. opened under a header, or forked from another one at any frontier, with room for all tokens it
// may get; 2. tokens are appended, never changed or taken back; 3. sealed: it gives back unused room and stays as it is;
// 4. released. Forking needs neither a sealed source nor copies its tokens, except for one cut of a run.
//
// Invariants (check_invariants):
// - A ledger with room left ends in a run that only it holds, with memory for all of its room: append allocates nothing
//   for text. Whoever forks such a ledger at its end takes the run; the ledger goes on in a new one.
// - Digests are those of prefix_digest.h, kept at every 64th token.
// - A header exists once and as long as a ledger has it.
//
// Origin is a fact of a request and not of identity: whatever a ledger inherits by fork is prompt to it.
// rewrite_frontiers are recorded and inherited; on the CPU nothing splits at them and nothing compares them, because
// results do not depend on how a prompt is cut there (docs/design/numerics.md, X1).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/result.h"
#include "cpp/program/identity_header.h"
#include "cpp/program/prefix_digest.h"
#include "cpp/program/token_origin.h"
#include "cpp/program/token_span.h"
#include "cpp/state/handle.h"
#include "cpp/state/refusal.h"
#include "cpp/state/shared_runs.h"

namespace ninfer {

using LedgerId = Handle<struct LedgerTag>;

// Tokens to append. The spans cover them, ascending, the first begins at the ledger's length; empty: text whose
// positions go on after the largest position of the last token.
struct LedgerTokens {
    std::span<const std::int32_t> ids;
    std::span<const TokenSpan> spans;
    TokenOrigin origin = TokenOrigin::kPrompt;
};

// What a run of tokens knows about them besides their ids.
struct LedgerRun {
    std::vector<Digest128> marks;  // digests at every multiple of kDigestBlockTokens in (begin, end]
    std::vector<TokenSpan> spans;  // the first begins where the run begins; none for an empty run
    bool grows = false;            // a ledger with room left ends in it
};

class LedgerStore {
   public:
    using Runs = SharedRuns<std::int32_t, LedgerRun>;

    // `room` is the most tokens it will ever have.
    LedgerId open(const IdentityHeader& header, std::int64_t room);
    // A ledger that begins with the source's first `frontier` tokens and has room for `room` in all (room == frontier: it
    // is sealed from the start). kStaleHandle, kBeyondFrontier, kOverReservation (wanted: frontier, found: room).
    // Views of tokens are invalid afterwards.
    Result<LedgerId, Refusal> fork(LedgerId source, std::int64_t frontier, std::int64_t room);
    // kStaleHandle, kOverReservation (wanted: tokens after the change, found: room).
    Result<Nothing, Refusal> append(LedgerId ledger, const LedgerTokens& tokens);
    // kStaleHandle, kBeyondFrontier (wanted: frontier, found: length), kBackwards (found: the last one recorded).
    Result<Nothing, Refusal> record_rewrite_frontier(LedgerId ledger, std::int64_t frontier);
    // Gives back unused room; room() == length() afterwards. Views of tokens are invalid afterwards. kStaleHandle.
    Result<Nothing, Refusal> seal(LedgerId ledger);
    Result<Nothing, Refusal> release(LedgerId ledger);  // kStaleHandle

    // Facts; each refuses a stale handle, and an index or frontier beyond the ledger with kBeyondFrontier.
    Result<std::int64_t, Refusal> length(LedgerId ledger) const;
    Result<std::int64_t, Refusal> room(LedgerId ledger) const;
    Result<const IdentityHeader*, Refusal> header(LedgerId ledger) const;
    // Tokens [begin, begin + out.size()) into `out`.
    Result<Nothing, Refusal> read(LedgerId ledger, std::int64_t begin, std::span<std::int32_t> out) const;
    // As many of the tokens from `begin` on as lie together; empty only at the end. Tokens that were appended since the
    // last fork of this ledger, or from it, lie together. Valid until the next fork, seal or release of any ledger.
    Result<std::span<const std::int32_t>, Refusal> view(LedgerId ledger, std::int64_t begin) const;
    Result<TokenFacts, Refusal> facts(LedgerId ledger, std::int64_t index) const;
    // The digest of the first `frontier` tokens; at most kDigestBlockTokens are hashed.
    Result<Digest128, Refusal> digest_at(LedgerId ledger, std::int64_t frontier) const;
    // Tokens of this origin in [begin, end).
    Result<std::int64_t, Refusal> count(LedgerId ledger, TokenOrigin origin, std::int64_t begin,
                                        std::int64_t end) const;
    Result<std::span<const std::int64_t>, Refusal> rewrite_frontiers(LedgerId ledger) const;

    std::int64_t ledger_count() const noexcept { return ledgers_.size(); }
    std::int64_t run_count() const noexcept { return runs_.run_count(); }

    // Pieces of a run, by index in its chains.
    static std::span<const std::int32_t> ids_in(const Runs::Run& run, std::int64_t begin, std::int64_t end);
    static std::size_t marks_between(std::int64_t begin, std::int64_t end);

    // For verification: the runs behind a valid ledger.
    const Runs& runs() const noexcept { return runs_; }
    RunId last_run(LedgerId ledger) const { return ledgers_.at(ledger).last; }

    void check_invariants() const;      // recomputes everything, digests included
    std::uint64_t fingerprint() const;  // over every field
    std::size_t bookkeeping_bytes() const;

   private:
    struct Header {
        IdentityHeader header;
        Digest128 digest;
        std::int64_t ledgers = 0;  // 0: the slot is free
    };
    // Tokens from `begin` on, to the next span or the end of the ledger.
    struct OriginSpan {
        std::int64_t begin;
        TokenOrigin origin;
    };
    struct Ledger {
        RunId last;
        std::int64_t length = 0;
        std::int64_t room = 0;
        std::uint32_t header = 0;
        std::vector<OriginSpan> origins;
        std::vector<std::int64_t> rewrite_frontiers;

        bool has_room() const noexcept { return length < room; }
    };

    std::uint32_t take_header(const IdentityHeader& header);
    // A new last run for `ledger` after `parent`, with memory for the ledger's room.
    void start_run(Ledger& ledger, RunId parent, std::vector<std::int32_t> memory);
    // Ends the ledger's own run, so that others may hold it; the ledger goes on in a new one.
    void leave_run(Ledger& ledger);
    RunId cut(RunId last, std::int64_t frontier);
    void drop_room(Ledger& ledger);
    // One ledger less ends at `last`; what it parted becomes one again.
    void detach(RunId last);
    // Joins runs of the chain that were parted for somebody who is gone.
    void compact(RunId last);
    // The run that holds token `index`, and the ledger's refusals.
    Result<const Runs::Run*, Refusal> run_at(LedgerId ledger, std::int64_t index) const;
    // The digest at a frontier of the chain, from the last one kept before it.
    Digest128 chain_digest(const Ledger& ledger, RunId last, std::int64_t frontier) const;
    void check_run(const Ledger& ledger, RunId id) const;
    void check_ledger(const Ledger& ledger) const;
    void check_runs() const;

    Runs runs_;
    HandleTable<Ledger, LedgerTag> ledgers_;
    std::vector<Header> headers_;
};

}  // namespace ninfer
