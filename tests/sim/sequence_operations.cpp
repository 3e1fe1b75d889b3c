#include "tests/sim/sequence_operations.h"

#include <algorithm>
#include <cstring>

#include "cpp/program/copy_polling.h"
#include "cpp/program/sequence_opening.h"
#include "tests/sim/image_operations.h"
#include "tests/sim/placement_operations.h"

namespace ninfer::sim {
namespace {

using enum RefusalKind;

SequenceRequest draw_request(ProgramSim& sim, int least) {
    SequenceRequest request;
    request.tokens = std::max(least, sim.random.between(1, static_cast<int>(sim.sizes.max_context) * 2 / 3));
    if (sim.random.percent(3)) request.tokens = sim.sizes.max_context + sim.random.between(1, 9);
    if (sim.random.percent(3) && least > 0) request.tokens = least - 1;
    request.captures = sim.random.percent(25) ? 0 : sim.random.between(0, 2);
    request.header = header_of(sim.random.percent(6) ? 1 : 0);
    return request;
}

int pages_for_request(const SequenceRequest& request) {
    return pages_for(static_cast<int>(request.tokens)) + static_cast<int>(request.captures);
}

Expected no_place(const ProgramSim& sim, const SequenceRequest& request) {
    if (request.tokens > sim.sizes.max_context) return Refusal{kOverContext, request.tokens, sim.sizes.max_context};
    if (!sim.model.has_lane()) return Refusal{kNoLane, sim.sizes.lanes + 1, sim.sizes.lanes};
    return {};
}

Expected no_pages(const ProgramSim& sim, int pages) {
    const std::int64_t free = sim.model.free().device_pages;
    if (pages > free) return Refusal{kNoPages, pages, free};
    return {};
}

// --- opening from a checkpoint --------------------------------------------------------------------------------------

struct Opening {
    Key source = 0;
    SourceUse use = SourceUse::kRetain;
    int frontier = 0;
    SequenceRequest request;

    bool takes_owner() const { return use != SourceUse::kRetain; }
    bool consumes(const CheckpointRecord& from) const {
        return use == SourceUse::kConsume || (takes_owner() && frontier < from.frontier());
    }
};

Expected not_takeable(const ProgramSim& sim, const Opening& opening) {
    const ContextModel& model = sim.model;
    const CheckpointRecord& from = model.checkpoints.at(opening.source);
    if (from.open_copies > 0) return Refusal{kCopyInFlight, 0, from.open_copies};
    if (const Expected no = no_takeover(sim, from.owner)) return no;
    if (from.image != 0 && !model.images.at(from.image).on_device) return Refusal{kNotOnDevice, 1, 0};
    return no_removal(sim, model.deeper(opening.source, opening.frontier));
}

// The pages, as the last thing that is checked.
Expected no_start(const ProgramSim& sim, const Opening& opening) {
    const CheckpointRecord& from = sim.model.checkpoints.at(opening.source);
    const int frontier = opening.frontier;
    int reserved = pages_for_request(opening.request) - frontier / 64;
    const bool whole = opening.consumes(from) && frontier == from.frontier();
    const bool in_place = whole && frontier % 64 != 0 && sim.model.viewers(from.view.pages.back()) == 1;
    if (in_place) --reserved;
    if (const Expected no = no_pages(sim, reserved)) return no;
    const int there = sim.model.on_device(from.view, pages_for(frontier));
    if (there < pages_for(frontier)) return Refusal{kNotOnDevice, pages_for(frontier), there};
    if (in_place && sim.model.pins(from.view.pages.back()) > 0) return Refusal{kPinned, 0, 1};
    return {};
}

Expected no_opening(const ProgramSim& sim, const Opening& opening) {
    if (const Expected no = sim.transaction_open()) return no;
    if (const Expected no = sim.no_checkpoint(opening.source)) return no;
    if (const Expected no = not_a_source(sim, opening.source, opening.frontier, opening.request)) return no;
    if (const Expected no = no_place(sim, opening.request)) return no;
    if (opening.takes_owner())
        if (const Expected no = not_takeable(sim, opening)) return no;
    return no_start(sim, opening);
}

ImageKey start_image(ProgramSim& sim, ImageKey source, bool consumes) {
    if (!sim.has_images()) return 0;
    ContextModel& model = sim.model;
    const ImageRecord image = model.images.at(source);
    const bool moves = consumes && image.on_device && model.references(source) == 1 && model.image_pins(source) == 0;
    if (moves) return model.new_image({.value = image.value});
    return model.new_image({.unsettled = !image.on_device, .source = source, .value = image.value});
}

void start_settling(ProgramSim& sim, Key key) {
    const SequenceRecord& sequence = sim.model.sequences.at(key);
    const ViewRecord& view = sequence.view;
    if (view.tail_source != 0)
        add_job(sim, {.copy = {.kind = CopyKind::kTail,
                               .page = view.tail_source,
                               .tail = view.pages[static_cast<std::size_t>(view.frontier / 64)]},
                      .purpose = CopyPurpose::kSettling,
                      .sequence = key});
    if (sequence.image != 0 && sim.model.images.at(sequence.image).unsettled)
        add_job(sim, {.copy = {.kind = CopyKind::kRestore,
                               .image = sim.model.images.at(sequence.image).source,
                               .restored = sequence.image},
                      .purpose = CopyPurpose::kSettling,
                      .sequence = key});
}

void do_opening(ProgramSim& sim, const Opening& opening, Key made) {
    ContextModel& model = sim.model;
    const CheckpointRecord from = model.checkpoints.at(opening.source);
    const bool consumes = opening.consumes(from);
    const bool whole = consumes && opening.frontier == from.frontier();
    const bool in_place = whole && opening.frontier % 64 != 0 && model.viewers(from.view.pages.back()) == 1;
    const int reserved = pages_for_request(opening.request) - opening.frontier / 64 - (in_place ? 1 : 0);
    SequenceRecord sequence{.reserved = static_cast<int>(opening.request.tokens),
                            .computed = opening.frontier,
                            .tokens = from.tokens,
                            .salt = from.salt,
                            .owner = from.owner};
    sequence.tokens.resize(static_cast<std::size_t>(opening.frontier));
    sequence.view =
        whole ? model.consumed(from.view, reserved, in_place) : model.forked(from.view, opening.frontier, reserved);
    sequence.image = start_image(sim, from.image, consumes);
    const auto deeper = model.deeper(opening.source, opening.frontier);
    if (!opening.takes_owner()) {
        sequence.owner = sim.state->sequences.at(SequenceHandle{made}).owner.value;
        model.owners.emplace(sequence.owner, OwnerRecord{});
    }
    const bool waits = sequence.view.tail_source != 0;
    if (opening.takes_owner())
        sequence.takeover = {.taken = true, .consumed = consumes, .kind = from.kind, .start = opening.frontier};
    if (consumes && waits) {
        sequence.takeover.view = from.view;
        sequence.takeover.tokens = from.tokens;
    }
    model.sequences.emplace(made, sequence);
    if (opening.takes_owner()) model.owners.at(from.owner).role = OwnerRole::kActive;
    // What is consumed goes, or waits for what pins it, before the deeper ones go.
    if (consumes && !whole && !waits) model.transition_view = from.view;  // until it is released in its turn
    if (consumes) {
        const bool image_goes = from.image != 0 && sim.model.images.at(from.image).on_device &&
                                model.references(from.image) == 1 && model.image_pins(from.image) == 0;
        model.unlist(opening.source);
        if (!image_goes) model.release_or_condemn({{}, from.image});
    }
    model.sweep();
    if (opening.takes_owner())
        for (const Key key : deeper) model.discard(key);
    model.transition_view = {};
    if (consumes && !whole && !waits) model.release_or_condemn({from.view, 0});
    ++model.revision;
    start_settling(sim, made);
    sim.count(whole ? ProgramSituation::kConsumed : ProgramSituation::kForked);
}

}  // namespace

void add_job(ProgramSim& sim, JobRecord job) {
    job.copy = sim.model.submit(job.copy);
    sim.model.jobs.push_back(job);
    const auto sequence = sim.model.sequences.find(job.sequence);
    if (sequence != sim.model.sequences.end()) {
        sequence->second.waits += job.purpose == CopyPurpose::kSettling ? 1 : 0;
        sequence->second.snapshots += job.purpose == CopyPurpose::kSnapshot ? 1 : 0;
    }
    if (job.purpose != CopyPurpose::kSettling) ++sim.model.checkpoints.at(job.checkpoint).open_copies;
}

TokenList draw_tokens(ProgramSim& sim, int count) {
    TokenList tokens;
    for (int i = 0; i < count; ++i)
        tokens.push_back({sim.random.below(static_cast<int>(sim.sizes.vocab_size)), ++sim.tokens_born});
    return tokens;
}

void open_root_sequence(ProgramSim& sim) {
    const SequenceRequest request = draw_request(sim, 0);
    sim.tell("open_root tokens %d captures %d", static_cast<int>(request.tokens), static_cast<int>(request.captures));
    Expected expected = sim.transaction_open();
    if (!expected) expected = no_place(sim, request);
    if (!expected) expected = no_pages(sim, pages_for_request(request));
    const auto made = sim.attempt(expected, [&] { return open_root(*sim.state, request); });
    if (!made) return;
    SequenceRecord sequence{.reserved = static_cast<int>(request.tokens), .salt = request.header.salt.empty() ? 0 : 1};
    sequence.view = {.there = true, .active = true, .reserved = pages_for_request(request)};
    if (sim.has_images()) sequence.image = sim.model.new_image({});
    sequence.owner = sim.state->sequences.at(*made).owner.value;
    sim.model.owners.emplace(sequence.owner, OwnerRecord{});
    sim.model.sequences.emplace(made->value, sequence);
    ++sim.model.revision;
}

void open_sequence_from(ProgramSim& sim) {
    Opening opening;
    const bool anywhere = sim.random.percent(45);
    const bool of_everybody = sim.random.percent(15);
    opening.source = sim.draw_checkpoint([&](Key, const CheckpointRecord& checkpoint) {
        const int pages = static_cast<int>(checkpoint.view.pages.size());
        if (of_everybody) return sim.model.owners.at(checkpoint.owner).role == OwnerRole::kShared;
        return !checkpoint.awaits_image && (anywhere || sim.model.on_device(checkpoint.view, pages) == pages);
    });
    opening.use = static_cast<SourceUse>(sim.random.below(3));
    const CheckpointRecord* from = sim.find_checkpoint(opening.source);
    const int most = from == nullptr ? 64 : from->frontier();
    opening.frontier = most;
    if (sim.random.percent(sim.has_images() ? 6 : 40)) opening.frontier = sim.random.below(most + 1);
    if (sim.random.percent(3)) opening.frontier = most + sim.random.between(1, 70);
    opening.request = draw_request(sim, opening.frontier);
    if (from != nullptr && !sim.random.percent(20)) opening.request.header = header_of(from->salt);
    sim.tell("open_from %llx use %d frontier %d tokens %d captures %d", shown(opening.source),
             static_cast<int>(opening.use), opening.frontier, static_cast<int>(opening.request.tokens),
             static_cast<int>(opening.request.captures));
    const SequenceSource source{CheckpointHandle{opening.source}, opening.use, opening.frontier};
    const auto made =
        sim.attempt(no_opening(sim, opening), [&] { return open_from(*sim.state, source, opening.request); });
    if (made) do_opening(sim, opening, made->value);
}

// --- units ----------------------------------------------------------------------------------------------------------

namespace {

std::byte* place_of(ProgramSim& sim, SpaceId space, int position) {
    const auto table = sim.state->stores.kv().page_table(space);
    const auto page = static_cast<std::size_t>(table[static_cast<std::size_t>(position / 64)]);
    return sim.state->stores.kv().pool().data + page * kPageBytes +
           static_cast<std::size_t>(position % 64) * kTokenBytes;
}

template <typename T>
T must(Result<T, Refusal> done, const char* what) {
    if (!done) throw SimFailure(std::string(what) + " is refused: " + done.error().message());
    return std::move(done).value();
}

void write_unit(ProgramSim& sim, Sequence& real, const SequenceRecord& record, int end, int mapped_end) {
    ContextStores& stores = sim.state->stores;
    must(stores.kv().map(real.kv, mapped_end), "a unit's map");
    const auto values = values_of_tokens(record.tokens, end);
    for (int i = record.computed; i < end; ++i)
        std::memcpy(place_of(sim, real.kv, i), &values[static_cast<std::size_t>(i)], kTokenBytes);
    must(stores.kv().commit(real.kv, end), "a unit's commit");
    if (!stores.has_images()) return;
    std::vector<std::byte> bytes(sim.sizes.image_bytes);
    fill_image(value_behind(record.tokens, record.computed), bytes.data(), bytes.size());
    if (std::memcmp(stores.images().read(real.image), bytes.data(), bytes.size()) != 0)
        throw SimFailure("a unit reads foreign state");
    fill_image(value_behind(record.tokens, end), bytes.data(), bytes.size());
    std::memcpy(stores.images().write(real.image), bytes.data(), bytes.size());
    must(stores.images().commit(real.image), "a unit's commit of its state");
}

void do_unit(ProgramSim& sim, SequenceRecord& sequence, int pages_mapped, int end) {
    ViewRecord& view = sequence.view;
    while (static_cast<int>(view.pages.size()) < pages_mapped) {
        view.pages.push_back(sim.model.new_page());
        --view.reserved;
    }
    for (int page = sequence.computed / 64; page < pages_for(end); ++page)
        sim.model.pages.at(view.pages[static_cast<std::size_t>(page)]).coverage = std::min(64, end - page * 64);
    view.frontier = sequence.computed = end;
    if (sequence.image == 0) return;
    ImageRecord& image = sim.model.images.at(sequence.image);
    if (image.source == 0) sim.count(ProgramSituation::kComputedInPlace);
    image.source = 0;
    image.value = value_behind(sequence.tokens, end);
}

Expected not_ready(const ProgramSim& sim, const SequenceRecord& sequence) {
    if (sequence.copy_failed) return Refusal{kCopyFailed, 1, 0};
    if (sequence.waits > 0) return Refusal{kUnsettled, 0, sequence.waits};
    if (sequence.snapshots > 0) return Refusal{kCopyInFlight, 0, sequence.snapshots};
    if (sequence.image != 0 && sim.model.image_copying(sequence.image)) return Refusal{kCopyInFlight, 0, 1};
    return {};
}

}  // namespace

bool is_busy(const ProgramSim& sim, const SequenceRecord& sequence) {
    const Expected no = not_ready(sim, sequence);
    return no && no->kind != kUnsettled;
}

bool any_busy(const ProgramSim& sim) {
    return std::ranges::any_of(sim.model.sequences, [&](const auto& item) { return is_busy(sim, item.second); });
}

bool can_compute(const ProgramSim& sim, const SequenceRecord& sequence) {
    return sequence.computed < sequence.reserved && !not_ready(sim, sequence);
}

void run_sequence_unit(ProgramSim& sim) {
    const bool of_busy = sim.random.percent(40) && any_busy(sim);
    run_sequence_unit(sim, sim.draw_sequence([&](Key, const SequenceRecord& sequence) {
        return of_busy ? is_busy(sim, sequence) : can_compute(sim, sequence);
    }));
}

void run_sequence_unit(ProgramSim& sim, Key key) {
    int wanted = sim.random.percent(60) ? sim.random.between(1, 8) : sim.random.between(1, 100);
    const SequenceRecord* before = sim.find_sequence(key);
    const bool to_border = before != nullptr && sim.random.percent(12);
    if (to_border) wanted = 64 - static_cast<int>(before->tokens.size()) % 64;
    sim.tell("unit %llx tokens %d", shown(key), wanted);
    Expected expected = sim.no_sequence(key);
    if (!expected) expected = not_ready(sim, *sim.find_sequence(key));
    const auto asked = sim.attempt(expected, [&]() -> Result<Nothing, Refusal> {
        const auto found = std::as_const(*sim.state).sequences.find(SequenceHandle{key});
        if (!found) return found.error();
        if (const auto refusal = sim.state->not_ready(*found.value())) return *refusal;
        return Nothing{};
    });
    if (!asked) return;
    SequenceRecord& record = sim.model.sequences.at(key);
    Sequence& real = sim.state->sequences.at(SequenceHandle{key});
    const int more = std::min(wanted, record.reserved - static_cast<int>(record.tokens.size()));
    const TokenList tokens = draw_tokens(sim, more);
    must(sim.state->stores.ledgers().append(real.ledger, {ids_of(tokens), {}, TokenOrigin::kPrompt}),
         "a unit's tokens");
    real.length += more;
    record.tokens.insert(record.tokens.end(), tokens.begin(), tokens.end());
    const int uncomputed = static_cast<int>(record.tokens.size()) - record.computed;
    if (uncomputed == 0) return;
    const int end =
        record.computed + (to_border || sim.random.percent(80) ? uncomputed : sim.random.between(1, uncomputed));
    const int mapped_end = sim.random.percent(20) ? std::min(record.reserved, end + 64) : end;
    write_unit(sim, real, record, end, mapped_end);
    real.computed = end;
    do_unit(sim, record, pages_for(mapped_end), end);
}

Expected not_ready_to_capture(const ProgramSim& sim, Key key, bool finishes) {
    if (const Expected no = sim.no_sequence(key)) return no;
    const SequenceRecord& sequence = sim.model.sequences.at(key);
    if (const Expected no = not_ready(sim, sequence)) return no;
    if (sequence.computed < 1) return Refusal{kBeyondFrontier, 1, sequence.computed};
    if (finishes || sequence.computed % 64 == 0) return {};
    const int tokens = (static_cast<int>(sequence.view.pages.size()) + sequence.view.reserved - 1) * 64;
    if (tokens < sequence.reserved) return Refusal{kOverReservation, sequence.reserved, tokens};
    return {};
}

}  // namespace ninfer::sim
