#include "cpp/program/copy_polling.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "cpp/base/commit_scope.h"
#include "cpp/program/checkpoint_removal.h"

namespace ninfer {

namespace {

struct CopyEnd {
    CopyKind kind = CopyKind::kPageToHost;
    bool published = false;
    ImageId image;  // of a snapshot
};

CopyEnd end_copy(ContextState& state, CopyId copy) {
    const CopyKind kind = state.stores.copies().find(copy).value()->kind;
    const auto published = state.stores.copies().publish(copy);
    if (published) return {kind, true, published.value()};
    const auto cancelled = state.stores.copies().cancel(copy);
    NINFER_ASSERT(cancelled.has_value(), "a copy with a job has no handle");
    return {kind, false, {}};
}

// A tail that failed is copied again: its source is pinned for as long as the space is unsettled, and a capture must not
// cost the running request its life. An image that cannot be restored ends the sequence.
// Whether the source is free of its pins.
bool end_settling(ContextState& state, const CopyJob& job, CopyEnd end) {
    Sequence& sequence = state.sequences.at(job.sequence);
    --sequence.waits;
    if (end.published) {
        if (end.kind == CopyKind::kTail) release_source(state, sequence.takeover);
        return true;
    }
    if (end.kind != CopyKind::kTail) {
        sequence.copy_failed = true;
        return false;
    }
    const CopyId again = state.stores.copies().start_tail(sequence.kv).value();
    add_job(state, {again, CopyPurpose::kSettling, job.sequence, {}});
    return false;
}

// Whether the checkpoint's placement has changed for good: at the end of the last copy of a transfer that moved anything.
bool end_placement(ContextState& state, const CopyJob& job, CopyEnd end) {
    Checkpoint& checkpoint = state.owners.at(job.checkpoint);
    --checkpoint.open_copies;
    if (end.published) ++checkpoint.copies_done;
    if (checkpoint.open_copies > 0) return false;
    return std::exchange(checkpoint.copies_done, 0) > 0;
}

// Whether the checkpoint is still there.
bool end_snapshot(ContextState& state, const CopyJob& job, CopyEnd end) {
    if (const auto sequence = state.sequences.find(job.sequence)) --sequence.value()->snapshots;
    Checkpoint& checkpoint = state.owners.at(job.checkpoint);
    --checkpoint.open_copies;
    checkpoint.awaits_image = false;
    checkpoint.image = end.image;
    if (!end.published) discard_checkpoint(state, job.checkpoint);
    return end.published;
}

// Whether something changed for good.
bool end_job(ContextState& state, const CopyJob& job, CopyEnd end, std::vector<CheckpointHandle>& removed) {
    switch (job.purpose) {
        case CopyPurpose::kSettling:
            return end_settling(state, job, end);
        case CopyPurpose::kPlacement:
            return end_placement(state, job, end);
        case CopyPurpose::kSnapshot:
            if (!end_snapshot(state, job, end)) removed.push_back(job.checkpoint);
            return true;
    }
    return false;
}

// Takes the jobs for which `chosen` holds out of the list.
template <typename Chosen>
std::vector<CopyJob> take_jobs(ContextState& state, Chosen&& chosen) {
    std::vector<CopyJob> taken;
    std::ranges::copy_if(state.jobs, std::back_inserter(taken), chosen);
    if (!taken.empty()) std::erase_if(state.jobs, chosen);
    return taken;
}

void cancel(ContextState& state, CopyId copy) {
    const auto cancelled = state.stores.copies().cancel(copy);
    NINFER_ASSERT(cancelled.has_value(), "a copy with a job has no handle");
}

}  // namespace

void add_job(ContextState& state, const CopyJob& job) {
    state.jobs.push_back(job);
    ++state.copies_begun;
    if (job.purpose == CopyPurpose::kSettling) ++state.sequences.at(job.sequence).waits;
    if (job.purpose == CopyPurpose::kSnapshot && state.sequences.find(job.sequence))
        ++state.sequences.at(job.sequence).snapshots;
    if (job.purpose != CopyPurpose::kSettling) ++state.owners.at(job.checkpoint).open_copies;
}

CopyProgress poll_copies(ContextState& state, std::size_t max_bytes) {
    const CommitScope commit;
    ReplicaCopies& copies = state.stores.copies();
    bool changed = copies.poll(max_bytes);
    CopyProgress progress;
    const auto ended =
        take_jobs(state, [&](const CopyJob& job) { return copies.status(job.copy).value() != CopyStatus::kPending; });
    for (const CopyJob& job : ended) {
        const CopyEnd end = end_copy(state, job.copy);
        ++(end.published ? progress.published : progress.failed);
        changed = end_job(state, job, end, progress.removed) || changed;
    }
    changed = release_condemned(state) || changed;
    if (changed) state.note_change();
    progress.open = std::ssize(state.jobs);
    progress.draining = copies.draining_copies();
    return progress;
}

Result<std::int64_t, Refusal> cancel_copies(ContextState& state, CheckpointHandle checkpoint) {
    if (const auto found = state.owners.find(checkpoint); !found) return found.error();
    const CommitScope commit;
    const auto jobs = take_jobs(state, [&](const CopyJob& job) { return job.checkpoint == checkpoint; });
    bool changed = false;
    std::vector<CheckpointHandle> removed;
    for (const CopyJob& job : jobs) {
        cancel(state, job.copy);
        changed = end_job(state, job, {}, removed) || changed;
    }
    if (changed) ++state.resource_revision;
    return std::ssize(jobs);
}

void cancel_settling(ContextState& state, SequenceHandle sequence) {
    const auto jobs = take_jobs(
        state, [&](const CopyJob& job) { return job.purpose == CopyPurpose::kSettling && job.sequence == sequence; });
    for (const CopyJob& job : jobs) {
        cancel(state, job.copy);
        --state.sequences.at(sequence).waits;
    }
}

void drain_copies(ContextState& state) {
    ReplicaCopies& copies = state.stores.copies();
    for (const CopyJob& job : state.jobs) cancel(state, job.copy);
    state.jobs.clear();
    while (copies.draining_copies() > 0) copies.poll(std::numeric_limits<std::size_t>::max());
}

}  // namespace ninfer
