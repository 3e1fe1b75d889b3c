#include "cpp/transaction/transaction_phase.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ninfer {

namespace {

using Phase = TransactionPhase;

constexpr std::array<std::pair<Phase, Phase>, 11> kLegalMoves = {{
    {Phase::kHostReleases, Phase::kCopyPreparation},
    {Phase::kCopyPreparation, Phase::kCopiesInFlight},
    {Phase::kCopyPreparation, Phase::kCopyPublication},
    {Phase::kCopiesInFlight, Phase::kCopyPublication},
    {Phase::kCopyPublication, Phase::kCopyPreparation},
    {Phase::kCopyPublication, Phase::kCommitted},
    {Phase::kHostReleases, Phase::kDraining},
    {Phase::kCopyPreparation, Phase::kDraining},
    {Phase::kCopiesInFlight, Phase::kDraining},
    {Phase::kCopyPublication, Phase::kDraining},
    {Phase::kDraining, Phase::kAborted},
}};

}  // namespace

std::string_view to_string(TransactionPhase phase) noexcept {
    switch (phase) {
        case Phase::kHostReleases:
            return "host_releases";
        case Phase::kCopyPreparation:
            return "copy_preparation";
        case Phase::kCopiesInFlight:
            return "copies_in_flight";
        case Phase::kCopyPublication:
            return "copy_publication";
        case Phase::kCommitted:
            return "committed";
        case Phase::kDraining:
            return "draining";
        case Phase::kAborted:
            return "aborted";
    }
    return "";
}

std::string_view to_string(CopyRound round) noexcept {
    switch (round) {
        case CopyRound::kDemotion:
            return "demotion";
        case CopyRound::kRestore:
            return "restore";
        case CopyRound::kActivation:
            return "activation";
    }
    return "";
}

bool is_legal_move(TransactionPhase from, TransactionPhase to) noexcept {
    return std::ranges::find(kLegalMoves, std::pair{from, to}) != kLegalMoves.end();
}

}  // namespace ninfer
