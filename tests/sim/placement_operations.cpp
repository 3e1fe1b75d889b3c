#include "tests/sim/placement_operations.h"

#include <algorithm>

#include "cpp/program/checkpoint_placement.h"
#include "cpp/program/checkpoint_removal.h"
#include "cpp/program/copy_polling.h"
#include "tests/sim/sequence_operations.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

template <typename Record>
bool is_on(const Record& record, Tier tier) {
    return tier == Tier::kDevice ? record.on_device : record.on_host;
}

Tier other(Tier tier) { return tier == Tier::kDevice ? Tier::kHost : Tier::kDevice; }

struct Parts {
    std::vector<PageKey> pages;
    ImageKey image = 0;
};

// Of a checkpoint, what is on the tier, or is not.
Parts parts_of(const ProgramSim& sim, const CheckpointRecord& checkpoint, Tier tier, bool there) {
    Parts parts;
    for (const PageKey page : checkpoint.view.pages)
        if (is_on(sim.model.pages.at(page), tier) == there) parts.pages.push_back(page);
    if (checkpoint.image != 0 && is_on(sim.model.images.at(checkpoint.image), tier) == there)
        parts.image = checkpoint.image;
    return parts;
}

Expected no_copy(const ProgramSim& sim, Key key, Tier tier) {
    if (const Expected no = sim.transaction_open()) return no;
    if (const Expected no = sim.no_checkpoint(key)) return no;
    const ContextModel& model = sim.model;
    const CheckpointRecord& checkpoint = model.checkpoints.at(key);
    if (checkpoint.open_copies > 0) return Refusal{kCopyInFlight, 0, checkpoint.open_copies};
    const Parts parts = parts_of(sim, checkpoint, tier, false);
    auto copying = std::ranges::count_if(parts.pages, [&](PageKey page) { return model.copying(page); });
    copying += parts.image != 0 && model.image_copying(parts.image) ? 1 : 0;
    if (copying > 0) return Refusal{kCopyInFlight, 0, copying};
    const ResourceAxes free = model.free();
    const std::int64_t pages = std::ssize(parts.pages);
    if (tier == Tier::kHost) {
        const std::int64_t blocks = pages + (parts.image != 0 ? model.blocks_per_image() : 0);
        if (blocks > free.host_blocks) return Refusal{kNoHostBlocks, blocks, free.host_blocks};
        return {};
    }
    if (pages > free.device_pages) return Refusal{kNoPages, pages, free.device_pages};
    if (parts.image != 0 && free.image_slots_checkpoint < 1)
        return Refusal{kNoImageSlots, 1, free.image_slots_checkpoint};
    return {};
}

// Why a replica on the tier cannot go.
Expected page_stays(const ProgramSim& sim, PageKey page, Tier tier) {
    if (!is_on(sim.model.pages.at(page), other(tier))) return Refusal{kLastReplica, 1, 0};
    if (sim.model.pins(page) > 0) return Refusal{kPinned, 0, sim.model.pins(page)};
    if (const int readers = tier == Tier::kDevice ? sim.model.readers(page) : 0; readers > 0)
        return Refusal{kActive, 0, readers};
    return {};
}

Expected image_stays_on(const ProgramSim& sim, ImageKey image, Tier tier) {
    if (!is_on(sim.model.images.at(image), other(tier))) return Refusal{kLastReplica, 1, 0};
    if (sim.model.image_pins(image) > 0) return Refusal{kPinned, 0, sim.model.image_pins(image)};
    return {};
}

Expected no_drop(const ProgramSim& sim, Key key, Tier tier) {
    if (const Expected no = sim.transaction_open()) return no;
    if (const Expected no = sim.no_checkpoint(key)) return no;
    const ContextModel& model = sim.model;
    const CheckpointRecord& checkpoint = model.checkpoints.at(key);
    if (checkpoint.open_copies > 0) return Refusal{kCopyInFlight, 0, checkpoint.open_copies};
    const Parts parts = parts_of(sim, checkpoint, tier, true);
    if (parts.pages.empty() && parts.image == 0) return Refusal{kNoReplica, static_cast<std::int64_t>(tier), -1};
    const auto can_go = [&](PageKey page) { return !page_stays(sim, page, tier); };
    if (std::ranges::any_of(parts.pages, can_go)) return {};
    Expected image_stays = Refusal{kNoReplica, static_cast<std::int64_t>(tier), -1};
    if (parts.image != 0) image_stays = image_stays_on(sim, parts.image, tier);
    if (!image_stays) return {};
    return parts.pages.empty() ? image_stays : page_stays(sim, parts.pages.front(), tier);
}

// A job has ended; whether something has changed for good.
bool end_job(ProgramSim& sim, const JobRecord& job, bool published, ImageKey image, bool cancelled) {
    ContextModel& model = sim.model;
    const auto sequence = model.sequences.find(job.sequence);
    if (job.purpose == CopyPurpose::kSettling) {
        --sequence->second.waits;
        if (published) {
            if (job.copy.kind == CopyKind::kTail) model.release_source(sequence->second);
            return true;
        }
        if (job.copy.kind == CopyKind::kRestore)
            sequence->second.copy_failed = true;
        else if (!cancelled)
            add_job(sim, job);  // a tail is copied again
        return false;
    }
    CheckpointRecord& checkpoint = model.checkpoints.at(job.checkpoint);
    --checkpoint.open_copies;
    if (job.purpose == CopyPurpose::kPlacement) {
        checkpoint.copies_done += published ? 1 : 0;
        return checkpoint.open_copies == 0 && std::exchange(checkpoint.copies_done, 0) > 0;
    }
    if (sequence != model.sequences.end()) --sequence->second.snapshots;
    checkpoint.awaits_image = false;
    checkpoint.image = image;
    if (!published) model.discard(job.checkpoint);
    return true;
}

// Of every chosen job, one after the other: what those to come pin stays pinned.
std::vector<JobRecord> chosen_jobs(const ContextModel& model, FunctionRef<bool(const JobRecord&)> chosen) {
    std::vector<JobRecord> jobs;
    for (const JobRecord& job : model.jobs)
        if (chosen(job)) jobs.push_back(job);
    return jobs;
}

void remove_job(ContextModel& model, const JobRecord& gone) {
    std::erase_if(model.jobs, [&](const JobRecord& job) { return job.copy.ticket.value == gone.copy.ticket.value; });
}

}  // namespace

Expected not_a_source(const ProgramSim& sim, Key key, int frontier, const SequenceRequest& request) {
    const CheckpointRecord& checkpoint = sim.model.checkpoints.at(key);
    if (checkpoint.awaits_image) return Refusal{kCopyInFlight, 0, checkpoint.open_copies};
    if (frontier > checkpoint.frontier()) return Refusal{kBeyondFrontier, frontier, checkpoint.frontier()};
    if (frontier < checkpoint.frontier() && sim.has_images())
        return Refusal{kBackwards, frontier, checkpoint.frontier()};
    if (!(header_of(checkpoint.salt) == request.header)) return Refusal{kMismatch, frontier, 0};
    if (request.tokens < frontier) return Refusal{kOverReservation, frontier, request.tokens};
    return {};
}

Expected no_takeover(const ProgramSim& sim, Key owner) {
    switch (sim.model.owners.at(owner).role) {
        case OwnerRole::kActive:
            return Refusal{kActive, 0, 1};
        case OwnerRole::kShared:
            return Refusal{kShared, 1, 2};
        case OwnerRole::kPrivate:
            return {};
    }
    return {};
}

Expected no_removal(const ProgramSim& sim, std::span<const Key> checkpoints) {
    const ContextModel& model = sim.model;
    for (const Key key : checkpoints)
        if (const int copies = model.checkpoints.at(key).open_copies; copies > 0)
            return Refusal{kCopyInFlight, 0, copies};
    std::map<PageKey, int> leaving;
    std::map<ImageKey, int> images_leaving;
    for (const Key key : checkpoints) {
        for (const PageKey page : model.checkpoints.at(key).view.pages) ++leaving[page];
        ++images_leaving[model.checkpoints.at(key).image];
    }
    for (const auto& [page, count] : leaving)
        if (model.viewers(page) == count && model.pins(page) > 0) return Refusal{kPinned, 0, model.pins(page)};
    for (const auto& [image, count] : images_leaving)
        if (image != 0 && model.references(image) == count && model.image_pins(image) > 0)
            return Refusal{kPinned, 0, model.image_pins(image)};
    return {};
}

bool release_condemned(ProgramSim& sim) {
    if (!sim.model.release_condemned()) return false;
    sim.count(ProgramSituation::kCondemned);
    return true;
}

void start_checkpoint_copy(ProgramSim& sim) {
    start_checkpoint_copy(sim, sim.random.percent(60) ? Tier::kHost : Tier::kDevice);
}

void start_checkpoint_copy(ProgramSim& sim, Tier tier) {
    const Key key = sim.draw_checkpoint([&](Key it, const CheckpointRecord& checkpoint) {
        const Parts parts = parts_of(sim, checkpoint, tier, false);
        return !(parts.pages.empty() && parts.image == 0) && !no_copy(sim, it, tier);
    });
    sim.tell("start_copy %llx tier %d", shown(key), static_cast<int>(tier));
    const auto bytes =
        sim.attempt(no_copy(sim, key, tier), [&] { return start_copy(*sim.state, CheckpointHandle{key}, tier); });
    if (!bytes) return;
    const Parts parts = parts_of(sim, sim.model.checkpoints.at(key), tier, false);
    const std::size_t moved = parts.pages.size() * kPageBytes + (parts.image != 0 ? sim.sizes.image_bytes : 0);
    expect_equal(moved, static_cast<std::size_t>(*bytes), "bytes of a transfer");
    for (const PageKey page : parts.pages)
        add_job(sim,
                {.copy = {.kind = tier == Tier::kHost ? CopyKind::kPageToHost : CopyKind::kPageToDevice, .page = page},
                 .checkpoint = key});
    if (parts.image != 0)
        add_job(sim, {.copy = {.kind = tier == Tier::kHost ? CopyKind::kImageToHost : CopyKind::kImageToDevice,
                               .image = parts.image},
                      .checkpoint = key});
}

void drop_checkpoint_replicas(ProgramSim& sim) {
    const Tier tier = sim.random.percent(60) ? Tier::kDevice : Tier::kHost;
    const Key key = sim.draw_checkpoint([&](Key it, const CheckpointRecord&) { return !no_drop(sim, it, tier); });
    sim.tell("drop %llx tier %d", shown(key), static_cast<int>(tier));
    const auto count =
        sim.attempt(no_drop(sim, key, tier), [&] { return drop(*sim.state, CheckpointHandle{key}, tier); });
    if (!count) return;
    const Parts parts = parts_of(sim, sim.model.checkpoints.at(key), tier, true);
    std::int64_t dropped = 0;
    const auto leave = [&](auto& record) {
        (tier == Tier::kDevice ? record.on_device : record.on_host) = false;
        ++dropped;
    };
    for (const PageKey page : parts.pages)
        if (!page_stays(sim, page, tier)) leave(sim.model.pages.at(page));
    if (parts.image != 0 && !image_stays_on(sim, parts.image, tier)) leave(sim.model.images.at(parts.image));
    expect_equal(dropped, *count, "dropped replicas");
    ++sim.model.revision;
}

void delete_one_checkpoint(ProgramSim& sim) {
    const bool stays = sim.random.percent(15);
    const Key key = sim.draw_checkpoint(
        [&](Key it, const CheckpointRecord&) { return no_removal(sim, {&it, 1}).has_value() == stays; });
    sim.tell("delete %llx", shown(key));
    Expected expected = sim.transaction_open();
    if (!expected) expected = sim.no_checkpoint(key);
    if (!expected) expected = no_removal(sim, {&key, 1});
    if (!sim.attempt(expected, [&] { return delete_checkpoint(*sim.state, CheckpointHandle{key}); })) return;
    sim.model.discard(key);
    release_condemned(sim);
    ++sim.model.revision;
}

void release_one_owner(ProgramSim& sim) {
    const bool stays = sim.random.percent(25);
    release_one_owner(sim, sim.draw_owner([&](Key, const OwnerRecord& owner) {
        return owner.role != OwnerRole::kActive && no_removal(sim, owner.checkpoints).has_value() == stays;
    }));
}

void release_one_owner(ProgramSim& sim, Key key) {
    sim.tell("release_owner %llx", shown(key));
    Expected expected = sim.transaction_open();
    if (!expected) expected = sim.no_owner(key);
    if (!expected && sim.find_owner(key)->role == OwnerRole::kActive) expected = Refusal{kActive, 0, 1};
    if (!expected) expected = no_removal(sim, sim.find_owner(key)->checkpoints);
    if (!sim.attempt(expected, [&] { return release_owner(*sim.state, OwnerHandle{key}); })) return;
    for (const Key checkpoint : std::vector<Key>(sim.find_owner(key)->checkpoints)) sim.model.discard(checkpoint);
    release_condemned(sim);
    ++sim.model.revision;
}

// --- copies ---------------------------------------------------------------------------------------------------------

bool cancel_jobs(ProgramSim& sim, FunctionRef<bool(const JobRecord&)> chosen) {
    bool changed = false;
    for (const JobRecord& job : chosen_jobs(sim.model, chosen)) {
        remove_job(sim.model, job);
        // Whatever had ended was taken from the jobs by the poll in which it did.
        sim.model.draining.push_back(job.copy);
        changed = end_job(sim, job, false, 0, true) || changed;
    }
    return changed;
}

void cancel_checkpoint_copies(ProgramSim& sim) {
    const Key key =
        sim.draw_checkpoint([](Key, const CheckpointRecord& checkpoint) { return checkpoint.open_copies > 0; });
    sim.tell("cancel_copies %llx", shown(key));
    const auto of_it = [&](const JobRecord& job) { return job.checkpoint == key; };
    const auto expected_count = std::ranges::count_if(sim.model.jobs, of_it);
    const auto count =
        sim.attempt(sim.no_checkpoint(key), [&] { return cancel_copies(*sim.state, CheckpointHandle{key}); });
    if (!count) return;
    expect_equal(expected_count, *count, "cancelled copies");
    if (cancel_jobs(sim, of_it)) ++sim.model.revision;
}

void poll_program_copies(ProgramSim& sim) {
    const bool all = sim.random.percent(50);
    const int bytes = sim.random.below(4 * static_cast<int>(kPageBytes));
    poll_program_copies(sim, all ? SIZE_MAX / 2 : static_cast<std::size_t>(bytes));
}

void poll_program_copies(ProgramSim& sim, std::size_t max_bytes) {
    sim.tell("poll %zu", max_bytes);
    const CopyProgress progress = poll_copies(*sim.state, max_bytes);
    sim.count_done();
    ContextModel& model = sim.model;
    const auto ended = [&](const CopyRecord& copy) { return sim.engine->outcome(copy.ticket) != CopyStatus::kPending; };
    bool changed = std::erase_if(model.draining, ended) > 0;
    std::int64_t published = 0;
    std::vector<Key> removed;
    const auto jobs = chosen_jobs(model, [&](const JobRecord& job) { return ended(job.copy); });
    for (const JobRecord& job : jobs) {
        remove_job(model, job);
        const bool arrived = sim.engine->outcome(job.copy.ticket) == CopyStatus::kDone;
        published += arrived ? 1 : 0;
        changed = end_job(sim, job, arrived, arrived ? model.publish(job.copy) : 0, false) || changed;
        if (!arrived && job.purpose == CopyPurpose::kSnapshot) removed.push_back(job.checkpoint);
        if (arrived && job.purpose == CopyPurpose::kSnapshot) sim.count(ProgramSituation::kSnapshotArrived);
        if (arrived) continue;
        if (job.purpose == CopyPurpose::kSnapshot) sim.count(ProgramSituation::kSnapshotFailed);
        if (job.purpose == CopyPurpose::kSettling) sim.count(ProgramSituation::kSettlingFailed);
    }
    changed = release_condemned(sim) || changed;
    if (changed && model.transition)
        model.transition->changed_besides = true;
    else if (changed)
        ++model.revision;
    expect_equal(std::ssize(model.jobs), progress.open, "open copies after a poll");
    expect_equal(published, progress.published, "copies published by a poll");
    expect_equal(std::ssize(jobs) - published, progress.failed, "copies failed by a poll");
    expect_equal(std::ssize(model.draining), progress.draining, "copies that drain after a poll");
    expect_equal(removed.size(), progress.removed.size(), "checkpoints removed by a poll");
    for (std::size_t i = 0; i < removed.size(); ++i)
        expect_equal(removed[i], progress.removed[i].value, "a checkpoint removed by a poll");
}

}  // namespace ninfer::sim
