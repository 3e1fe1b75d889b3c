#pragma once

// Where a running transaction is. One table says which moves are legal, and one function moves.
//
//   kHostReleases -> kCopyPreparation -> kCopiesInFlight? -> kCopyPublication -> kCommitted
//
// Preparation, flight and publication come once per round (demotions, restores of pages, activation), so publication may be
// followed by the next preparation. Every phase but kCommitted may be left for kDraining, where the copies of an aborted
// transaction end, and that for kAborted.

#include <cstdint>
#include <string_view>

namespace ninfer {

enum class TransactionPhase : std::uint8_t {
    kHostReleases,     // next: releases, cuts and drops; nothing has been changed yet
    kCopyPreparation,  // next: the destinations of this round, and its copies begin
    kCopiesInFlight,   // copies of this round are on their way
    kCopyPublication,  // next: publishes this round's copies, and ends what they replace
    kCommitted,
    kDraining,  // aborted: waits until the engine has let go of every destination
    kAborted,
};

enum class CopyRound : std::uint8_t { kDemotion, kRestore, kActivation };

std::string_view to_string(TransactionPhase phase) noexcept;
std::string_view to_string(CopyRound round) noexcept;

bool is_legal_move(TransactionPhase from, TransactionPhase to) noexcept;

inline bool has_ended(TransactionPhase phase) noexcept {
    return phase == TransactionPhase::kCommitted || phase == TransactionPhase::kAborted;
}

}  // namespace ninfer
