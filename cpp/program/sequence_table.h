#pragma once

// The lanes of a program: a fixed number of places for active sequences. What a sequence holds of the stores is its
// user's to give back.

#include <vector>

#include "cpp/base/function_ref.h"
#include "cpp/program/sequence.h"
#include "cpp/state/fingerprint.h"

namespace ninfer {

class SequenceTable {
   public:
    SequenceTable(std::int64_t lanes, std::int64_t vocab_size)
        : vocab_size_(static_cast<std::size_t>(vocab_size)), lanes_(static_cast<std::size_t>(lanes)) {}

    // The memory for a sequence that counts tokens, of which there must be a free lane: open allocates nothing afterwards.
    // May throw for want of memory, and has changed nothing that anybody sees.
    void make_room(bool count_tokens);
    // Makes the sequence of a free lane empty and open.
    SequenceHandle open(bool count_tokens);
    // Its handle is stale from now on.
    void close(SequenceHandle handle);

    // kStaleHandle: wanted the handle's generation, found that of the lane's last sequence (0 for a lane that is not).
    Result<const Sequence*, Refusal> find(SequenceHandle handle) const;
    Result<Sequence*, Refusal> find(SequenceHandle handle);
    // The handle must be valid.
    Sequence& at(SequenceHandle handle) { return *find(handle).value(); }
    const Sequence& at(SequenceHandle handle) const { return *find(handle).value(); }
    void for_each(FunctionRef<void(SequenceHandle, const Sequence&)> visit) const;

    std::int64_t lanes() const noexcept { return std::ssize(lanes_); }
    std::int64_t lanes_open() const noexcept;

    void add_to(Fingerprint& fingerprint) const;

   private:
    std::size_t vocab_size_;
    std::vector<Sequence> lanes_;
};

}  // namespace ninfer
