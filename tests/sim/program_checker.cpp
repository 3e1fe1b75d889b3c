#include "tests/sim/program_checker.h"

#include <algorithm>
#include <cstring>

#include "cpp/program/checkpoint_placement.h"
#include "tests/sim/image_operations.h"

namespace ninfer::sim {
namespace {

void check_used(ProgramSim& sim) {
    const UsedVector expected = sim.model.used();
    const UsedVector found = sim.state->stores.copies().used();
    expect_equal(expected.device_pages, found.device_pages, "used device pages");
    expect_equal(expected.device_pages_reserved, found.device_pages_reserved, "reserved device pages");
    expect_equal(expected.image_slots_active, found.image_slots_active, "image slots of active images");
    expect_equal(expected.image_slots_checkpoint, found.image_slots_checkpoint, "image slots of checkpoints");
    expect_equal(expected.host_blocks, found.host_blocks, "used Host blocks");
    if (axes_of(sim.state->stores.copies().capacity()) != sim.model.capacity())
        throw SimFailure("capacity has changed");
    if (!sim.model.axes().fits(sim.model.capacity())) throw SimFailure("more is used than there is");
}

class ProgramCheck {
   public:
    explicit ProgramCheck(ProgramSim& sim) : sim_(sim), model_(sim.model), state_(*sim.state) {
        std::erase_if(sim.page_names, [&](const auto& item) { return !model_.pages.contains(item.first); });
        std::erase_if(sim.image_names, [&](const auto& item) { return !model_.images.contains(item.first); });
    }

    void check() {
        expect_equal(model_.revision, state_.resource_revision, "resource revision");
        check_owners();
        check_sequences();
        check_condemned();
        check_transition();
        expect_equal(model_.pages.size(), pages_.size(), "pages");
        check_images();
        expect_equal(model_.jobs.size(), state_.jobs.size(), "open copies");
        expect_equal(static_cast<std::int64_t>(model_.draining.size()), state_.stores.copies().draining_copies(),
                     "draining copies");
        expect_equal(model_.submitted, sim_.engine->submitted(), "copies ever started");
    }

   private:
    // --- bytes ------------------------------------------------------------------------------------------------------
    void expect_bytes(const void* expected, const std::byte* found, std::size_t bytes, const char* what) {
        if (std::memcmp(expected, found, bytes) != 0) throw SimFailure(std::string(what) + " holds foreign bytes");
    }
    void expect_bytes_on_host(const void* expected, const BlockList& list, std::size_t bytes, const char* what) {
        std::vector<CopySegment> segments;
        std::vector<std::byte> found(bytes);
        state_.stores.host().append_from_host(list, found.data(), bytes, segments);
        for (const CopySegment& segment : segments) std::memcpy(segment.dst, segment.src, segment.bytes);
        expect_bytes(expected, found.data(), bytes, what);
    }

    // --- pages ------------------------------------------------------------------------------------------------------
    void check_view(const ViewRecord& view, SpaceId space, const TokenList& tokens) {
        const SpaceFacts facts = state_.stores.kv().facts(space).value();
        expect_equal(view.active, facts.active, "activity of a space");
        expect_equal(std::int64_t{view.frontier}, facts.frontier, "frontier of a space");
        expect_equal(std::int64_t{view.reserved}, facts.reserved, "reservation of a space");
        expect_equal(view.tail_source == 0, facts.settled, "settling of a space");
        expect_equal(view.pages.size(), static_cast<std::size_t>(facts.pages), "pages of a space");
        const auto values = values_of_tokens(tokens, view.frontier);
        std::size_t index = 0;
        state_.stores.kv().for_each_page(space, [&](PageId id, const LogicalPage& found) {
            const PageKey key = view.pages[index];
            check_page(key, id, found);
            const auto begin = std::min(index * 64, values.size());
            const auto end = std::min(begin + static_cast<std::size_t>(model_.pages.at(key).coverage), values.size());
            check_content(found, values.data() + begin, (end - begin) * kTokenBytes);
            ++index;
        });
    }

    void check_page(PageKey key, PageId id, const LogicalPage& found) {
        const auto [name, is_new] = sim_.page_names.emplace(key, id.value);
        expect_equal(name->second, id.value, "handle of a page");
        if (!pages_.insert(id.value).second) return;
        const PageRecord& page = model_.pages.at(key);
        expect_equal(page.on_device, found.on_device(), "Device replica of a page");
        expect_equal(page.on_host, found.on_host(), "Host replica of a page");
        expect_equal(page.coverage, found.coverage, "coverage of a page");
        expect_equal(model_.viewers(key), state_.stores.kv().references(found), "references of a page");
        // Which copy of an open round is whose is not the model's to know.
        if (model_.transition) return;
        expect_equal(model_.pins(key), found.pins, "pins of a page");
        expect_equal(model_.copying(key), found.copying, "open copy of a page");
    }

    void check_content(const LogicalPage& found, const void* expected, std::size_t bytes) {
        const std::byte* pool = state_.stores.kv().pool().data;
        if (found.on_device())
            expect_bytes(expected, pool + static_cast<std::size_t>(found.device_page) * kPageBytes, bytes,
                         "a page on Device");
        if (found.on_host()) expect_bytes_on_host(expected, found.host, bytes, "a page on Host");
    }

    // --- images -----------------------------------------------------------------------------------------------------
    void name_image(ImageKey key, ImageId id) {
        if (key == 0) return expect_equal(Key{0}, id.value, "no image");
        const auto [name, is_new] = sim_.image_names.emplace(key, id.value);
        expect_equal(name->second, id.value, "handle of an image");
    }

    void check_images() {
        if (!sim_.has_images()) return;
        std::size_t count = 0;
        state_.stores.images().for_each([&](ImageId, const StateImage&) { ++count; });
        expect_equal(model_.images.size(), count, "images");
        for (const auto& [key, image] : model_.images) {
            const auto name = sim_.image_names.find(key);
            if (name == sim_.image_names.end()) throw SimFailure("an image that nobody shows");
            check_image(key, image, ImageId{name->second});
        }
    }

    void check_image(ImageKey key, const ImageRecord& image, ImageId id) {
        const auto shown = state_.stores.images().find(id);
        if (!shown) throw SimFailure("an image is gone");
        const StateImage& found = *shown.value();
        expect_equal(image.active, found.active, "activity of an image");
        expect_equal(image.unsettled, found.unsettled, "settling of an image");
        expect_equal(image.source == 0 ? Key{0} : sim_.image_names.at(image.source), found.source.value,
                     "source of an image");
        expect_equal(image.on_device, found.on_device(), "Device replica of an image");
        expect_equal(image.on_host, found.on_host(), "Host replica of an image");
        expect_equal(model_.references(key), found.references, "references of an image");
        if (!model_.transition) {
            expect_equal(model_.image_pins(key), found.pins, "pins of an image");
            expect_equal(model_.image_copying(key), found.copying, "open copy of an image");
        }
        std::vector<std::byte> expected(sim_.sizes.image_bytes);
        fill_image(image.value, expected.data(), expected.size());
        if (image.on_device && image.source == 0)
            expect_bytes(expected.data(), state_.stores.images().slot_data(found.slot), expected.size(),
                         "an image on Device");
        if (image.on_host) expect_bytes_on_host(expected.data(), found.host, expected.size(), "an image on Host");
    }

    // --- who there is -----------------------------------------------------------------------------------------------
    void check_ledger(LedgerId ledger, const TokenList& tokens) {
        expect_equal(std::ssize(tokens), state_.stores.ledgers().length(ledger).value(), "length of a ledger");
        std::vector<std::int32_t> found(tokens.size());
        if (!state_.stores.ledgers().read(ledger, 0, found) || found != ids_of(tokens))
            throw SimFailure("a ledger has other tokens");
    }

    void check_sequences() {
        expect_equal(std::ssize(model_.sequences), state_.sequences.lanes_open(), "sequences");
        for (const auto& [key, sequence] : model_.sequences) {
            const auto shown = std::as_const(state_).sequences.find(SequenceHandle{key});
            if (!shown) throw SimFailure("a sequence is gone");
            const Sequence& found = *shown.value();
            expect_equal(std::int64_t{sequence.reserved}, found.reserved, "tokens of a sequence");
            expect_equal(std::int64_t{sequence.computed}, found.computed, "computed tokens of a sequence");
            expect_equal(sequence.owner, found.owner.value, "owner of a sequence");
            expect_equal(sequence.waits, found.waits, "copies that a sequence waits for");
            expect_equal(sequence.snapshots, found.snapshots, "snapshots of a sequence");
            expect_equal(sequence.copy_failed, found.copy_failed, "failure of a sequence");
            check_ledger(found.ledger, sequence.tokens);
            check_view(sequence.view, found.kv, sequence.tokens);
            expect_equal(sequence.takeover.view.there, found.takeover.holds_source(), "whether a source is held");
            if (sequence.takeover.view.there) {
                check_ledger(found.takeover.ledger, sequence.takeover.tokens);
                check_view(sequence.takeover.view, found.takeover.kv, sequence.takeover.tokens);
            }
            name_image(sequence.image, found.image);
        }
    }

    void check_owners() {
        expect_equal(std::ssize(model_.owners), state_.owners.owners(), "owners");
        expect_equal(std::ssize(model_.checkpoints), state_.owners.checkpoints(), "checkpoints");
        for (const auto& [key, owner] : model_.owners) {
            const auto shown = state_.owners.find(OwnerHandle{key});
            if (!shown) throw SimFailure("an owner is gone");
            expect_equal(static_cast<int>(owner.role), static_cast<int>(shown.value()->role), "role of an owner");
            const auto& listed = shown.value()->checkpoints;
            expect_equal(owner.checkpoints.size(), listed.size(), "checkpoints of an owner");
            for (std::size_t i = 0; i < listed.size(); ++i)
                expect_equal(owner.checkpoints[i], listed[i].value, "a checkpoint of an owner");
        }
        for (const auto& [key, checkpoint] : model_.checkpoints) check_checkpoint(CheckpointHandle{key}, checkpoint);
    }

    void check_checkpoint(CheckpointHandle handle, const CheckpointRecord& checkpoint) {
        const auto shown = state_.owners.find(handle);
        if (!shown) throw SimFailure("a checkpoint is gone");
        const Checkpoint& found = *shown.value();
        expect_equal(checkpoint.owner, found.owner.value, "owner of a checkpoint");
        expect_equal(static_cast<int>(checkpoint.kind), static_cast<int>(found.kind), "kind of a checkpoint");
        expect_equal(std::int64_t{checkpoint.frontier()}, found.frontier, "frontier of a checkpoint");
        expect_equal(checkpoint.awaits_image, found.awaits_image, "whether a checkpoint waits for its image");
        expect_equal(checkpoint.open_copies, found.open_copies, "open copies of a checkpoint");
        check_ledger(found.ledger, checkpoint.tokens);
        check_view(checkpoint.view, found.kv, checkpoint.tokens);
        name_image(checkpoint.image, found.image);
        const CheckpointSummary summary = summarise(state_, handle).value();
        const int pages = static_cast<int>(checkpoint.view.pages.size());
        const int on_device = model_.on_device(checkpoint.view, pages);
        const auto exclusive =
            std::ranges::count_if(checkpoint.view.pages, [&](PageKey page) { return model_.viewers(page) == 1; });
        const bool image_ready = checkpoint.image == 0 || model_.images.at(checkpoint.image).on_device;
        expect_equal(std::int64_t{on_device}, summary.pages_on_device, "pages of a checkpoint on Device");
        expect_equal(exclusive, summary.pages_exclusive, "pages that only a checkpoint sees");
        expect_equal(has_everything(checkpoint), summary.valid, "validity of a checkpoint");
        expect_equal(!checkpoint.awaits_image && on_device == pages && image_ready, summary.device_ready,
                     "readiness of a checkpoint");
    }

    // On one tier or the other, and as much of each page as the frontier needs.
    bool has_everything(const CheckpointRecord& checkpoint) const {
        if (checkpoint.awaits_image) return false;
        int needed = checkpoint.frontier();
        for (const PageKey key : checkpoint.view.pages) {
            const PageRecord& page = model_.pages.at(key);
            if (!(page.on_device || page.on_host) || page.coverage < std::min(64, needed)) return false;
            needed -= 64;
        }
        if (checkpoint.image == 0) return needed <= 0;
        const ImageRecord& image = model_.images.at(checkpoint.image);
        return needed <= 0 && (image.on_device || image.on_host);
    }

    void check_condemned() {
        expect_equal(model_.condemned.size(), state_.condemned.size(), "condemned parts");
        for (std::size_t i = 0; i < model_.condemned.size(); ++i) {
            const CondemnedRecord& parts = model_.condemned[i];
            const Condemned& found = state_.condemned[i];
            expect_equal(parts.view.there, found.kv != SpaceId{}, "a condemned space");
            name_image(parts.image, found.image);
            if (!parts.view.there) continue;
            std::size_t index = 0;
            state_.stores.kv().for_each_page(found.kv, [&](PageId id, const LogicalPage& page) {
                check_page(parts.view.pages.at(index++), id, page);
            });
            expect_equal(parts.view.pages.size(), index, "pages of a condemned space");
        }
    }

    void check_transition() {
        expect_equal(model_.transition.has_value(), state_.transaction != nullptr, "an open transition");
        if (!model_.transition) return;
        const RunningTransaction& running = *state_.transaction->running;
        expect_equal(model_.transition_view.there, running.kv() != SpaceId{}, "pages of a transition");
        name_image(model_.transition_image, running.image());
        expect_equal(static_cast<std::int64_t>(model_.transition_copies.size()), running.open_copies(),
                     "open copies of a transition");
        if (model_.transition_view.there)
            check_view(model_.transition_view, running.kv(), model_.transition->source_tokens);
    }

    ProgramSim& sim_;
    const ContextModel& model_;
    ContextState& state_;
    std::set<Key> pages_;  // seen
};

}  // namespace

void check_program(ProgramSim& sim) {
    sim.note_handles();
    sim.state->check_invariants();
    check_used(sim);
    ProgramCheck(sim).check();
}

}  // namespace ninfer::sim
