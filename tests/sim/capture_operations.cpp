#include <algorithm>

#include "cpp/program/capture.h"
#include "cpp/program/sequence_opening.h"
#include "tests/sim/placement_operations.h"
#include "tests/sim/sequence_operations.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

bool borrows(const ProgramSim& sim, const SequenceRecord& sequence) {
    if (sequence.image == 0) return false;
    const ImageRecord& image = sim.model.images.at(sequence.image);
    return image.source != 0 && !image.unsettled;
}

bool snapshots(const ProgramSim& sim, const SequenceRecord& sequence, Tier tier) {
    return sequence.image != 0 && tier == Tier::kHost && !borrows(sim, sequence);
}

Expected no_room(const ProgramSim& sim, Key key, Tier tier) {
    const ResourceAxes room = room_for_image(sim, sim.model.sequences.at(key), tier);
    const ResourceAxes free = sim.model.free();
    if (room.image_slots_checkpoint > free.image_slots_checkpoint)
        return Refusal{kNoImageSlots, room.image_slots_checkpoint, free.image_slots_checkpoint};
    if (room.host_blocks > free.host_blocks) return Refusal{kNoHostBlocks, room.host_blocks, free.host_blocks};
    return {};
}

CheckpointRecord checkpoint_of(const SequenceRecord& sequence, CheckpointKind kind) {
    CheckpointRecord made{.owner = sequence.owner, .kind = kind, .tokens = sequence.tokens, .salt = sequence.salt};
    made.tokens.resize(static_cast<std::size_t>(sequence.computed));
    made.view = {.there = true, .frontier = sequence.computed, .pages = sequence.view.pages};
    made.view.pages.resize(static_cast<std::size_t>(pages_for(sequence.computed)));
    return made;
}

CheckpointKind draw_kind(ProgramSim& sim) {
    return static_cast<CheckpointKind>(sim.random.below(static_cast<int>(kCheckpointKinds)));
}

Tier draw_tier(ProgramSim& sim) { return sim.random.percent(42) ? Tier::kDevice : Tier::kHost; }

// The writer goes on with a copy of an unaligned tail.
void leave_tail(ProgramSim& sim, ViewRecord& view) {
    if (view.frontier % 64 == 0) return;
    PageKey& tail = view.pages[static_cast<std::size_t>(view.frontier / 64)];
    view.tail_source = tail;
    tail = sim.model.new_page();
    --view.reserved;
}

}  // namespace

ResourceAxes room_for_image(const ProgramSim& sim, const SequenceRecord& sequence, Tier tier) {
    if (sequence.image == 0 || borrows(sim, sequence)) return {};
    if (tier == Tier::kDevice) return {.image_slots_checkpoint = 1};
    return {.host_blocks = sim.model.blocks_per_image()};
}

Expected no_capture(const ProgramSim& sim, Key key, Tier tier) {
    if (const Expected no = sim.transaction_open()) return no;
    if (const Expected no = not_ready_to_capture(sim, key, false)) return no;
    return no_room(sim, key, tier);
}

Expected no_finish(const ProgramSim& sim, Key key, Tier tier) {
    if (const Expected no = sim.transaction_open()) return no;
    if (const Expected no = not_ready_to_capture(sim, key, true)) return no;
    return no_room(sim, key, tier);
}

bool do_capture(ProgramSim& sim, Key key, const CaptureRequest& request, Key captured) {
    ContextModel& model = sim.model;
    SequenceRecord& sequence = model.sequences.at(key);
    CheckpointRecord made = checkpoint_of(sequence, request.kind);
    const bool waits = snapshots(sim, sequence, request.image_tier);
    if (!request.own) {
        made.owner = sim.state->owners.find(CheckpointHandle{captured}).value()->owner.value;
        model.owners.emplace(made.owner, OwnerRecord{.role = OwnerRole::kShared});
    }
    made.awaits_image = waits;
    if (borrows(sim, sequence)) {
        made.image = model.images.at(sequence.image).source;
        sim.count(ProgramSituation::kSharedByCapture);
    } else if (sequence.image != 0 && !waits) {
        sim.count(ProgramSituation::kFrozenByCapture);
        const std::uint64_t value = model.images.at(sequence.image).value;
        made.image = model.new_image({.active = false, .value = value});
        model.images.at(sequence.image).source = made.image;
    }
    leave_tail(sim, sequence.view);
    const PageKey tail_source = sequence.view.tail_source;
    const auto tail_index = static_cast<std::size_t>(sequence.view.frontier / 64);
    model.checkpoints.emplace(captured, made);
    model.list(captured);
    if (waits)
        add_job(sim, {.copy = {.kind = CopyKind::kSnapshot, .image = sequence.image},
                      .purpose = CopyPurpose::kSnapshot,
                      .sequence = key,
                      .checkpoint = captured});
    // The tail with which a consumed source could be given back is the capture's now.
    if (tail_source != 0 && sequence.takeover.consumed && !sequence.has_computed()) {
        sequence.takeover.view = made.view;
        sequence.takeover.tokens = made.tokens;
    }
    if (tail_source != 0)
        add_job(sim, {.copy = {.kind = CopyKind::kTail, .page = tail_source, .tail = sequence.view.pages[tail_index]},
                      .purpose = CopyPurpose::kSettling,
                      .sequence = key});
    return !waits;
}

void do_finish(ProgramSim& sim, Key key, const FinishRequest& request, Key owner, Key endpoint) {
    ContextModel& model = sim.model;
    const SequenceRecord sequence = model.sequences.at(key);
    expect_equal(sequence.owner, owner, "owner of a finished sequence");
    CheckpointRecord made = checkpoint_of(sequence, request.kind);
    const bool waits = snapshots(sim, sequence, request.image_tier);
    made.awaits_image = waits;
    if (borrows(sim, sequence)) {
        made.image = model.images.at(sequence.image).source;
    } else if (sequence.image != 0 && !waits) {
        made.image = sequence.image;
        model.images.at(sequence.image).active = false;
        sim.count(ProgramSituation::kFrozenByFinish);
    }
    model.checkpoints.emplace(endpoint, made);
    model.list(endpoint);
    model.sequences.erase(key);
    model.owners.at(owner).role = OwnerRole::kPrivate;
    if (waits)
        add_job(sim, {.copy = {.kind = CopyKind::kSnapshot, .image = sequence.image},
                      .purpose = CopyPurpose::kSnapshot,
                      .checkpoint = endpoint});
    if (sequence.image != 0 && sequence.image != made.image) model.release_or_condemn({{}, sequence.image});
    model.sweep();
    release_condemned(sim);
}

void capture_sequence(ProgramSim& sim) {
    const CaptureRequest request{draw_kind(sim), draw_tier(sim), sim.random.percent(60)};
    const bool busy = sim.random.percent(40) && any_busy(sim);
    const Key key = sim.draw_sequence([&](Key it, const SequenceRecord& sequence) {
        return busy ? is_busy(sim, sequence) : !no_capture(sim, it, request.image_tier);
    });
    sim.tell("capture %llx tier %d own %d", shown(key), static_cast<int>(request.image_tier),
             static_cast<int>(request.own));
    const auto captured = sim.attempt(no_capture(sim, key, request.image_tier),
                                      [&] { return capture(*sim.state, SequenceHandle{key}, request); });
    if (captured && do_capture(sim, key, request, captured->value)) ++sim.model.revision;
}

void finish_sequence(ProgramSim& sim) {
    const FinishRequest request{draw_kind(sim), draw_tier(sim)};
    const bool busy = sim.random.percent(40) && any_busy(sim);
    const Key key = sim.draw_sequence([&](Key it, const SequenceRecord& sequence) {
        return busy ? is_busy(sim, sequence) : !no_finish(sim, it, request.image_tier);
    });
    sim.tell("finish %llx tier %d", shown(key), static_cast<int>(request.image_tier));
    const auto owner = sim.attempt(no_finish(sim, key, request.image_tier),
                                   [&] { return finish(*sim.state, SequenceHandle{key}, request); });
    if (!owner) return;
    const Key endpoint = sim.state->owners.find(*owner).value()->checkpoints.back().value;
    do_finish(sim, key, request, owner->value, endpoint);
    ++sim.model.revision;
}

void close_one_sequence(ProgramSim& sim) {
    const bool waiting = sim.random.percent(75);
    const bool gives = sim.random.percent(60);
    close_one_sequence(sim, sim.draw_sequence([&](Key, const SequenceRecord& sequence) {
        if (gives && sequence.takeover.taken && !sequence.has_computed()) return true;
        return (waiting && sequence.waits > 0) || sequence.copy_failed || sequence.computed == sequence.reserved;
    }));
}

namespace {

bool gives_back(const ProgramSim& sim, const SequenceRecord& sequence) {
    if (!sequence.takeover.taken || sequence.has_computed()) return false;
    if (!sequence.takeover.consumed) return !sim.model.owners.at(sequence.owner).checkpoints.empty();
    return sequence.image == 0 || borrows(sim, sequence) || sim.model.free().image_slots_checkpoint > 0;
}

// The checkpoint of the owner that the model does not know yet.
Key new_checkpoint(const ProgramSim& sim, Key owner) {
    for (const CheckpointHandle handle : sim.state->owners.find(OwnerHandle{owner}).value()->checkpoints)
        if (!sim.model.checkpoints.contains(handle.value)) return handle.value;
    throw SimFailure("a consumed source is not given back");
}

void give_back(ProgramSim& sim, SequenceRecord sequence) {
    ContextModel& model = sim.model;
    model.owners.at(sequence.owner).role = OwnerRole::kPrivate;
    sim.count(ProgramSituation::kGivenBack);
    if (!sequence.takeover.consumed) return model.release_or_condemn({sequence.view, sequence.image});
    CheckpointRecord source = checkpoint_of(sequence, sequence.takeover.kind);
    const bool holds = sequence.takeover.view.there;
    if (holds) {
        source.view = sequence.takeover.view;
        source.tokens = sequence.takeover.tokens;
    }
    const bool shares = borrows(sim, sequence);
    source.image = shares ? model.images.at(sequence.image).source : sequence.image;
    const Key key = new_checkpoint(sim, sequence.owner);
    model.checkpoints.emplace(key, source);
    model.list(key);
    if (holds) model.release_or_condemn({sequence.view, 0});
    if (shares)
        model.release_or_condemn({{}, sequence.image});
    else if (sequence.image != 0)
        model.images.at(sequence.image).active = false;
    model.sweep();
}

void discard(ProgramSim& sim, SequenceRecord sequence, const std::vector<Key>& captures) {
    ContextModel& model = sim.model;
    model.transition_view = sequence.takeover.view;  // until it is released in its turn
    model.release_or_condemn({sequence.view, sequence.image});
    model.transition_view = {};
    model.release_source(sequence);
    for (const Key capture : captures)
        if (model.checkpoints.contains(capture)) model.discard(capture);
    model.owners.erase(sequence.owner);
}

}  // namespace

void close_one_sequence(ProgramSim& sim, Key key) {
    sim.tell("close %llx", shown(key));
    Expected expected = sim.transaction_open();
    if (!expected) expected = sim.no_sequence(key);
    if (!sim.attempt(expected, [&] { return close_sequence(*sim.state, SequenceHandle{key}); })) return;
    ContextModel& model = sim.model;
    const std::uint64_t revision = model.revision;
    cancel_jobs(sim,
                [&](const JobRecord& job) { return job.purpose == CopyPurpose::kSettling && job.sequence == key; });
    const bool gives = gives_back(sim, model.sequences.at(key));
    const auto captures = model.owners.at(model.sequences.at(key).owner).checkpoints;
    if (!gives)
        for (const Key capture : captures)
            cancel_jobs(sim, [&](const JobRecord& job) { return job.checkpoint == capture; });
    const SequenceRecord sequence = model.sequences.at(key);
    model.sequences.erase(key);
    if (gives)
        give_back(sim, sequence);
    else
        discard(sim, sequence, captures);
    release_condemned(sim);
    model.revision = revision + 1;
}

}  // namespace ninfer::sim
