#include "tests/sim/store_checker.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "tests/sim/image_operations.h"
#include "tests/sim/joined_runs.h"

namespace ninfer::sim {
namespace {

using Counts = std::map<PageKey, StoreModel::PageCounts>;

void check_used(SimContext& context) {
    const UsedVector expected = context.model.used();
    const UsedVector found = context.world.copies().used();
    const CapacityVector capacity = context.world.copies().capacity();
    expect_equal(expected.device_pages, found.device_pages, "used device pages");
    expect_equal(expected.device_pages_reserved, found.device_pages_reserved, "reserved device pages");
    expect_equal(expected.image_slots_active, found.image_slots_active, "image slots of active images");
    expect_equal(expected.image_slots_checkpoint, found.image_slots_checkpoint, "image slots of checkpoints");
    expect_equal(expected.host_blocks, found.host_blocks, "used Host blocks");
    const WorldSize& size = context.world.size();
    expect_equal(std::int64_t{size.pages}, capacity.device_pages, "device pages");
    expect_equal(std::int64_t{size.host_blocks}, capacity.host_blocks, "Host blocks");
    if (found.device_pages + found.device_pages_reserved > capacity.device_pages ||
        found.host_blocks > capacity.host_blocks)
        throw SimFailure("more is used than there is");
}

void expect_content(const void* expected, const std::byte* found, std::size_t bytes, const char* what) {
    if (std::memcmp(expected, found, bytes) != 0) throw SimFailure(std::string(what) + " holds foreign bytes");
}

// Compares the first bytes of a record on Host, piece by piece.
void expect_content_on_host(SimContext& context, const void* expected, const BlockList& list, std::size_t bytes,
                            const char* what) {
    static thread_local std::vector<CopySegment> pieces;
    static thread_local std::vector<std::byte> buffer;
    buffer.resize(bytes);
    pieces.clear();
    context.world.host().append_from_host(list, buffer.data(), bytes, pieces);
    std::size_t sum = 0;
    for (const CopySegment& piece : pieces) {
        expect_content(static_cast<const std::byte*>(expected) + (piece.dst - buffer.data()), piece.src, piece.bytes,
                       what);
        sum += piece.bytes;
    }
    expect_equal(bytes, sum, "bytes of a record on Host");
}

void check_epoch(Key& known, bool& must_be_new, Key found, std::set<Key>& seen, const char* what) {
    if (!must_be_new) return expect_equal(known, found, what);
    if (!seen.insert(found).second) throw SimFailure(std::string(what) + ": seen before: " + std::to_string(found));
    known = found;
    must_be_new = false;
}

void check_page(SimContext& context, PageKey key, const StoreModel::PageCounts& counts, PageId handle,
                const LogicalPage& found) {
    StoreModel& model = context.model;
    ModelPage& page = model.pages.at(key);
    if (page.handle == 0) {
        page.handle = handle.value;
        model.page_handles.born(handle.value);
    }
    expect_equal(page.handle, handle.value, "handle of a page");
    expect_equal(page.coverage, found.coverage, "coverage of a page");
    expect_equal(page.on_device, found.on_device(), "Device replica of a page");
    expect_equal(page.on_host, found.on_host(), "Host replica of a page");
    expect_equal(counts.references, context.world.pages().references(found), "references of a page");
    expect_equal(counts.pins, found.pins, "pins of a page");
    expect_equal(counts.copying, found.copying, "open copy of a page");
    const bool writable = page.coverage < 64 && counts.active_readers == 1 && counts.references == 1;
    expect_equal(writable, context.world.pages().writable(found), "writer of a page");
    check_epoch(page.epoch, page.new_epoch, found.epoch, model.page_epochs, "epoch of a page");
    const std::size_t bytes = static_cast<std::size_t>(page.coverage) * kTokenBytes;
    const std::byte* pool = context.world.pages().pool().data;
    if (page.on_device)
        expect_content(page.values.data(), pool + static_cast<std::size_t>(found.device_page) * kPageBytes, bytes,
                       "a page on Device");
    if (page.on_host) expect_content_on_host(context, page.values.data(), found.host, bytes, "a page on Host");
}

void check_runs(SimContext& context, const Counts& counts, SpaceId id, const ModelSpace& space) {
    const StoreModel& model = context.model;
    std::int64_t next = static_cast<std::int64_t>(space.pages.size());
    context.world.pages().for_each_run(id, [&](const RunFacts& run) {
        expect_equal(next, run.first_page + run.pages, "end of a run");
        next = run.first_page;
        int on_device = 0;
        int on_host = 0;
        int pins = 0;
        for (std::int64_t i = run.first_page; i < run.first_page + run.pages; ++i) {
            const PageKey key = space.pages[static_cast<std::size_t>(i)];
            expect_equal(counts.at(key).references, run.holders, "holders of a run");
            expect_equal(counts.at(key).active_readers, run.counts.readers, "readers of a run");
            on_device += model.pages.at(key).on_device ? 1 : 0;
            on_host += model.pages.at(key).on_host ? 1 : 0;
            pins += counts.at(key).pins;
        }
        expect_equal(on_device, run.counts.on_device, "pages of a run on Device");
        expect_equal(on_host, run.counts.on_host, "pages of a run on Host");
        expect_equal(pins, run.counts.pins, "pins of a run");
    });
    expect_equal(std::int64_t{0}, next, "begin of the first run");
}

void check_facts(SimContext& context, const Counts& counts, SpaceId id, const ModelSpace& space) {
    const StoreModel& model = context.model;
    const SpaceFacts facts = context.world.pages().facts(id).value();
    std::int64_t on_device = 0;
    std::int64_t on_host = 0;
    std::int64_t exclusive = 0;
    std::int64_t pins = 0;
    for (const PageKey key : space.pages) {
        on_device += model.pages.at(key).on_device ? 1 : 0;
        on_host += model.pages.at(key).on_host ? 1 : 0;
        exclusive += counts.at(key).references == 1 ? 1 : 0;
        pins += counts.at(key).pins;
    }
    const bool settled = space.tail_source == 0;
    expect_equal(std::int64_t{space.frontier}, facts.frontier, "frontier of a space");
    expect_equal(space.active, facts.active, "activity of a space");
    expect_equal(settled, facts.settled, "settling of a space");
    expect_equal(std::int64_t{space.reserved}, facts.reserved, "reservation of a space");
    expect_equal(space.pages.size(), static_cast<std::size_t>(facts.pages), "pages of a space");
    expect_equal(on_device, facts.pages_on_device, "pages of a space on Device");
    expect_equal(on_host, facts.pages_on_host, "pages of a space on Host");
    expect_equal(exclusive, facts.pages_exclusive, "exclusive pages of a space");
    expect_equal(pins, facts.pins, "pins of a space");
    expect_equal(settled && on_device == std::ssize(space.pages), facts.device_ready(), "a space's readiness");
    expect_equal(settled, context.world.pages().valid(id).value(), "validity of a space");
}

// What freeze would do, and where the pages are for a unit.
void check_active(SimContext& context, const Counts& counts, SpaceId id, const ModelSpace& space) {
    const StoreModel& model = context.model;
    const CaptureShape shape = context.world.pages().capture_shape(id).value();
    std::int64_t shared = 0;
    for (int i = 0; i < pages_for(space.frontier); ++i)
        shared += counts.at(space.pages[static_cast<std::size_t>(i)]).references > 1 ? 1 : 0;
    expect_equal(shared, shape.shared, "shared pages of a capture");
    expect_equal(pages_for(space.frontier) - shared, shape.frozen_in_place, "pages that a capture freezes in place");
    expect_equal(std::int64_t{space.frontier % 64 != 0}, shape.copies, "copies of a capture");
    const auto table = context.world.pages().page_table(id);
    expect_equal(space.pages.size(), table.size(), "entries of a page table");
    for (std::size_t i = 0; i < table.size(); ++i) {
        const PageId page{model.pages.at(space.pages[i]).handle};
        expect_equal(context.world.pages().find(page).value()->device_page, table[i], "an entry of a page table");
    }
}

void check_spaces(SimContext& context) {
    StoreModel& model = context.model;
    std::size_t count = 0;
    context.world.pages().for_each_space([&](SpaceId id, const AddressSpace&) {
        if (!model.spaces.contains(id.value)) throw SimFailure("a space that should be gone");
        ++count;
    });
    expect_equal(model.spaces.size(), count, "spaces");
    const Counts counts = model.recount();
    std::set<PageKey> checked;
    for (const auto& [key, space] : model.spaces) {
        const SpaceId id{key};
        std::size_t index = 0;
        context.world.pages().for_each_page(id, [&](PageId page, const LogicalPage& found) {
            if (index >= space.pages.size()) throw SimFailure("a space has too many pages");
            const PageKey expected = space.pages[index++];
            if (checked.insert(expected).second)
                check_page(context, expected, counts.at(expected), page, found);
            else
                expect_equal(model.pages.at(expected).handle, page.value, "a page of a space");
        });
        expect_equal(space.pages.size(), index, "pages of a space");
        check_facts(context, counts, id, space);
        check_runs(context, counts, id, space);
        if (space.active && space.tail_source == 0) check_active(context, counts, id, space);
    }
    expect_equal(model.pages.size(), checked.size(), "pages");
    expect_few_runs(context);
}

void check_image(SimContext& context, Key key, const StateImage& found) {
    StoreModel& model = context.model;
    ModelImage& image = model.images.at(key);
    expect_equal(image.active, found.active, "activity of an image");
    expect_equal(image.unsettled, found.unsettled, "settling of an image");
    expect_equal(image.source, found.source.value, "source of an image");
    expect_equal(image.on_device, found.on_device(), "Device replica of an image");
    expect_equal(image.on_host, found.on_host(), "Host replica of an image");
    expect_equal(image.references, found.references, "references of an image");
    expect_equal(model.image_pins(key), found.pins, "pins of an image");
    expect_equal(model.image_copying(key), found.copying, "open copy of an image");
    check_epoch(image.epoch, image.new_epoch, found.epoch, model.image_epochs, "epoch of an image");
    const std::size_t bytes = context.world.size().image_bytes;
    static thread_local std::vector<std::byte> expected;
    expected.resize(bytes);
    fill_image(image.value, expected.data(), bytes);
    if (image.on_device && image.source == 0)
        expect_content(expected.data(), context.world.images().slot_data(found.slot), bytes, "an image on Device");
    if (image.borrows()) expect_content(expected.data(), context.world.images().read({key}), bytes, "a borrowed image");
    if (image.on_host) expect_content_on_host(context, expected.data(), found.host, bytes, "an image on Host");
}

void check_images(SimContext& context) {
    if (!context.world.has_images()) return;
    std::size_t count = 0;
    context.world.images().for_each([&](ImageId id, const StateImage& image) {
        if (!context.model.images.contains(id.value)) throw SimFailure("an image that should be gone");
        check_image(context, id.value, image);
        ++count;
    });
    expect_equal(context.model.images.size(), count, "images");
}

}  // namespace

void check_stores(SimContext& context) {
    context.world.copies().check_invariants();
    check_used(context);
    check_spaces(context);
    check_images(context);
    const StoreModel& model = context.model;
    expect_equal(model.copies.size(), static_cast<std::size_t>(context.world.copies().open_copies()), "open copies");
    expect_equal(model.draining.size(), static_cast<std::size_t>(context.world.copies().draining_copies()),
                 "draining copies");
    const auto waits = [](const ModelCopy& copy) { return copy.ticket == CopyTicket{}; };
    std::int64_t waiting = 0;
    for (const auto& [key, copy] : model.copies) {
        expect_equal(copy.ticket.value, context.world.copies().find(CopyId{key}).value()->ticket.value,
                     "ticket of a copy");
        waiting += waits(copy) ? 1 : 0;
    }
    expect_equal(waiting, context.world.copies().waiting_copies(), "copies that wait for the engine");
    const auto handed_over =
        std::ssize(model.copies) - waiting + std::ssize(model.draining) - std::ranges::count_if(model.draining, waits);
    expect_equal(handed_over, std::int64_t{context.world.engine().jobs()}, "jobs of the copy engine");
}

}  // namespace ninfer::sim
