#pragma once

// Situations that the coverage table counts besides operations and refusals: how each kind of copy ended, in which phase
// it was cancelled, and which of its ways an operation took.

#include <string>
#include <vector>

#include "cpp/state/replica_copies.h"

namespace ninfer::sim {

enum class CopyEnding { kPublished, kCancelledUntouched, kCancelledMidway, kCancelledDone, kCancelledFailed };
inline constexpr int kCopyKinds = 7;
inline constexpr int kCopyEndings = 5;

enum class Situation {
    kConsumedTailInPlace = kCopyKinds * kCopyEndings,
    kConsumedTailCutShort,  // the space saw less of its tail than others did who are gone
    kConsumedTailCopied,    // others see it
    kFrozeWrittenTail,
    kFrozeAligned,
    kFrozeWithPagesAhead,  // mapped and not committed
    kFrozeNothingNew,      // all pages are shared already
    kReleasedSharing,      // some pages stay with others
    kForkedDeep,           // from a space whose pages three or more others see
    kDroppedOneOfTwo,      // replicas of a page
    kBorrowedTwice,        // two active images borrow from the same frozen one
    kCount,
};

inline int situation_of(CopyKind kind, CopyEnding ending) {
    return static_cast<int>(kind) * kCopyEndings + static_cast<int>(ending);
}

// Names in the order of their numbers.
std::vector<std::string> situation_names();

}  // namespace ninfer::sim
