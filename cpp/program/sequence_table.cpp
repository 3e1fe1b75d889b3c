#include "cpp/program/sequence_table.h"

#include <algorithm>

namespace ninfer {

namespace {

bool is_free(const Sequence& sequence) { return !sequence.open; }

}  // namespace

void SequenceTable::make_room(bool count_tokens) {
    if (!count_tokens) return;
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(), is_free);
    NINFER_ASSERT(lane != lanes_.end(), "no free lane although there was one");
    lane->output_counts.reserve(vocab_size_);
    lane->seen_counts.reserve(vocab_size_);
}

SequenceHandle SequenceTable::open(bool count_tokens) {
    const auto lane = std::find_if(lanes_.begin(), lanes_.end(), is_free);
    NINFER_ASSERT(lane != lanes_.end(), "no free lane although there was one");
    const auto counted = count_tokens ? vocab_size_ : 0;
    lane->output_counts.assign(counted, 0);
    lane->seen_counts.assign(counted, 0);
    Sequence opened;
    opened.generation = lane->generation + 1 == 0 ? 1 : lane->generation + 1;
    opened.open = true;
    opened.output_counts = std::move(lane->output_counts);
    opened.seen_counts = std::move(lane->seen_counts);
    *lane = std::move(opened);
    return {static_cast<std::uint64_t>(lane->generation) << 32 | static_cast<std::uint64_t>(lane - lanes_.begin())};
}

void SequenceTable::close(SequenceHandle handle) { at(handle).open = false; }

Result<const Sequence*, Refusal> SequenceTable::find(SequenceHandle handle) const {
    const auto stale = [&](std::int64_t generation) {
        return Refusal{RefusalKind::kStaleHandle, handle.generation(), generation};
    };
    if (handle.slot() >= lanes_.size()) return stale(0);
    const Sequence& sequence = lanes_[handle.slot()];
    if (!sequence.open || sequence.generation != handle.generation()) return stale(sequence.generation);
    return &sequence;
}

Result<Sequence*, Refusal> SequenceTable::find(SequenceHandle handle) {
    const auto found = std::as_const(*this).find(handle);
    if (!found) return found.error();
    return const_cast<Sequence*>(found.value());
}

void SequenceTable::for_each(FunctionRef<void(SequenceHandle, const Sequence&)> visit) const {
    for (std::size_t slot = 0; slot < lanes_.size(); ++slot)
        if (lanes_[slot].open)
            visit(SequenceHandle{static_cast<std::uint64_t>(lanes_[slot].generation) << 32 | slot}, lanes_[slot]);
}

std::int64_t SequenceTable::lanes_open() const noexcept {
    return lanes() - std::count_if(lanes_.begin(), lanes_.end(), is_free);
}

void SequenceTable::add_to(Fingerprint& fingerprint) const {
    for_each([&](SequenceHandle handle, const Sequence& sequence) {
        for (const std::uint64_t id :
             {handle.value, sequence.ledger.value, sequence.kv.value, sequence.image.value, sequence.owner.value,
              sequence.takeover.kv.value, sequence.takeover.ledger.value})
            fingerprint.add(id);
        for (const std::int64_t count :
             {sequence.reserved, sequence.length, sequence.computed, sequence.prompt_tokens_computed,
              sequence.output_count, std::int64_t{sequence.waits}, std::int64_t{sequence.snapshots},
              std::int64_t{sequence.copy_failed}, std::int64_t{sequence.takeover.taken},
              std::int64_t{sequence.takeover.consumed}, static_cast<std::int64_t>(sequence.takeover.kind),
              sequence.takeover.start})
            fingerprint.add(count);
        for (const auto count : sequence.output_counts) fingerprint.add(count);
        for (const auto count : sequence.seen_counts) fingerprint.add(count);
    });
}

}  // namespace ninfer
