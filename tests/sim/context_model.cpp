#include "tests/sim/context_model.h"

#include <algorithm>
#include <set>

#include "tests/sim/sim_failure.h"

namespace ninfer::sim {

Refusal LaneHistory::stale(Key handle) const {
    const auto found = generations.find(static_cast<std::uint32_t>(handle));
    return {RefusalKind::kStaleHandle, static_cast<std::int64_t>(handle >> 32),
            found == generations.end() ? 0 : found->second};
}

int ContextModel::blocks_per_image() const {
    return static_cast<int>((sizes.image_bytes + sizes.page_bytes - 1) / sizes.page_bytes);
}

ResourceAxes ContextModel::capacity() const {
    return {sizes.kv_pages, has_images() ? sizes.lanes : 0, has_images() ? sizes.checkpoint_slots : 0,
            sizes.host_bytes / static_cast<std::int64_t>(sizes.page_bytes)};
}

// --- counted --------------------------------------------------------------------------------------------------------

std::vector<ViewRecord*> ContextModel::all_views() {
    std::vector<ViewRecord*> all;
    const auto add = [&](ViewRecord& view) {
        if (view.there) all.push_back(&view);
    };
    for (auto& [key, sequence] : sequences) {
        add(sequence.view);
        add(sequence.takeover.view);
    }
    for (auto& [key, checkpoint] : checkpoints) add(checkpoint.view);
    for (CondemnedRecord& parts : condemned) add(parts.view);
    add(transition_view);
    return all;
}

std::vector<const ViewRecord*> ContextModel::views() const {
    const auto all = const_cast<ContextModel*>(this)->all_views();
    return {all.begin(), all.end()};
}

std::vector<const CopyRecord*> ContextModel::copies() const {
    std::vector<const CopyRecord*> all;
    for (const JobRecord& job : jobs) all.push_back(&job.copy);
    for (const CopyRecord& copy : draining) all.push_back(&copy);
    for (const CopyRecord& copy : transition_copies) all.push_back(&copy);
    return all;
}

int ContextModel::viewers(PageKey page) const {
    int count = 0;
    for (const ViewRecord* view : views()) count += std::ranges::count(view->pages, page) > 0 ? 1 : 0;
    return count;
}

int ContextModel::readers(PageKey page) const {
    int count = 0;
    for (const ViewRecord* view : views()) count += view->active && std::ranges::count(view->pages, page) > 0 ? 1 : 0;
    return count;
}

int ContextModel::pins(PageKey page) const {
    int count = 0;
    for (const ViewRecord* view : views()) count += view->tail_source == page ? 1 : 0;
    for (const CopyRecord* copy : copies()) count += (copy->page == page ? 1 : 0) + (copy->tail == page ? 1 : 0);
    return count;
}

bool ContextModel::copying(PageKey page) const {
    return std::ranges::any_of(
        copies(), [&](const CopyRecord* copy) { return (copy->tail != 0 ? copy->tail : copy->page) == page; });
}

int ContextModel::references(ImageKey image) const {
    int count = transition_image == image ? 1 : 0;
    for (const auto& [key, sequence] : sequences) count += sequence.image == image ? 1 : 0;
    for (const auto& [key, checkpoint] : checkpoints) count += checkpoint.image == image ? 1 : 0;
    for (const CondemnedRecord& parts : condemned) count += parts.image == image ? 1 : 0;
    return count;
}

int ContextModel::image_pins(ImageKey image) const {
    int count = 0;
    for (const auto& [key, other] : images) count += other.source == image ? 1 : 0;
    for (const CopyRecord* copy : copies()) count += (copy->image == image ? 1 : 0) + (copy->restored == image ? 1 : 0);
    return count;
}

bool ContextModel::image_copying(ImageKey image) const {
    return std::ranges::any_of(copies(), [&](const CopyRecord* copy) {
        return (copy->restored != 0 ? copy->restored : copy->image) == image;
    });
}

bool ContextModel::any_pin() const {
    return !copies().empty() || std::ranges::any_of(images, [](const auto& item) { return item.second.source != 0; }) ||
           std::ranges::any_of(views(), [](const ViewRecord* view) { return view->tail_source != 0; });
}

UsedVector ContextModel::used() const {
    UsedVector used;
    for (const auto& [key, page] : pages) {
        used.device_pages += page.on_device ? 1 : 0;
        used.host_blocks += page.on_host ? 1 : 0;
    }
    for (const ViewRecord* view : views()) used.device_pages_reserved += view->reserved;
    for (const auto& [key, image] : images) {
        if (image.on_device) ++(image.active ? used.image_slots_active : used.image_slots_checkpoint);
        used.host_blocks += image.on_host ? blocks_per_image() : 0;
    }
    for (const CopyRecord* copy : copies()) {
        used.device_pages += copy->kind == CopyKind::kPageToDevice ? 1 : 0;
        used.image_slots_checkpoint += copy->kind == CopyKind::kImageToDevice ? 1 : 0;
        used.host_blocks += copy->kind == CopyKind::kPageToHost ? 1 : 0;
        if (copy->kind == CopyKind::kImageToHost || copy->kind == CopyKind::kSnapshot)
            used.host_blocks += blocks_per_image();
    }
    return used;
}

int ContextModel::on_device(const ViewRecord& view, int pages_wanted) const {
    int count = 0;
    for (int i = 0; i < pages_wanted; ++i) count += pages.at(view.pages[static_cast<std::size_t>(i)]).on_device ? 1 : 0;
    return count;
}

// --- changes --------------------------------------------------------------------------------------------------------

PageKey ContextModel::new_page() {
    pages.emplace(++last_page_, PageRecord{});
    return last_page_;
}

ImageKey ContextModel::new_image(const ImageRecord& image) {
    images.emplace(++last_image_, image);
    return last_image_;
}

void ContextModel::sweep() {
    std::set<PageKey> seen;
    for (const ViewRecord* view : views()) seen.insert(view->pages.begin(), view->pages.end());
    std::erase_if(pages, [&](const auto& item) { return !seen.contains(item.first); });
    std::erase_if(images, [&](const auto& item) { return references(item.first) == 0; });
}

bool ContextModel::view_is_pinned(const ViewRecord& view) const {
    return std::ranges::any_of(view.pages, [&](PageKey page) { return viewers(page) == 1 && pins(page) > 0; });
}

bool ContextModel::try_release(CondemnedRecord& parts) {
    bool released = false;
    if (parts.view.there && !view_is_pinned(parts.view)) {
        parts.view = {};
        released = true;
        sweep();
    }
    if (parts.image != 0 && (references(parts.image) > 1 || image_pins(parts.image) == 0)) {
        parts.image = 0;
        released = true;
        sweep();
    }
    return released;
}

void ContextModel::release_or_condemn(CondemnedRecord parts) {
    condemned.push_back(std::move(parts));
    try_release(condemned.back());
    if (!condemned.back().view.there && condemned.back().image == 0) condemned.pop_back();
}

bool ContextModel::release_condemned() {
    bool released = false;
    for (CondemnedRecord& parts : condemned) released = try_release(parts) || released;
    std::erase_if(condemned, [](const CondemnedRecord& parts) { return !parts.view.there && parts.image == 0; });
    return released;
}

void ContextModel::release_source(SequenceRecord& sequence) {
    const ViewRecord view = std::exchange(sequence.takeover.view, {});
    if (view.there) release_or_condemn({view, 0});
}

ViewRecord ContextModel::forked(const ViewRecord& source, int frontier, int reserved) {
    ViewRecord view{.there = true, .active = true, .frontier = frontier, .reserved = reserved};
    view.pages.assign(source.pages.begin(), source.pages.begin() + frontier / 64);
    if (frontier % 64 == 0) return view;
    view.tail_source = source.pages[static_cast<std::size_t>(frontier / 64)];
    view.pages.push_back(new_page());
    --view.reserved;
    return view;
}

ViewRecord ContextModel::consumed(const ViewRecord& source, int reserved, bool in_place) {
    const int frontier = source.frontier;
    if (frontier % 64 != 0 && !in_place) return forked(source, frontier, reserved);
    ViewRecord view = source;
    view.active = true;
    view.reserved = reserved;
    if (frontier % 64 == 0) return view;
    PageRecord& tail = pages.at(view.pages.back());
    tail.on_host = false;
    tail.coverage = frontier % 64;
    return view;
}

ImageKey ContextModel::publish(const CopyRecord& copy) {
    switch (copy.kind) {
        case CopyKind::kPageToHost:
            pages.at(copy.page).on_host = true;
            return 0;
        case CopyKind::kPageToDevice:
            pages.at(copy.page).on_device = true;
            return 0;
        case CopyKind::kTail:
            for (ViewRecord* view : all_views())
                if (view->tail_source != 0 && view->pages[static_cast<std::size_t>(view->frontier / 64)] == copy.tail) {
                    view->tail_source = 0;
                    pages.at(copy.tail).coverage = view->frontier % 64;
                }
            return 0;
        case CopyKind::kImageToHost:
            images.at(copy.image).on_host = true;
            return 0;
        case CopyKind::kImageToDevice:
            images.at(copy.image).on_device = true;
            return 0;
        case CopyKind::kSnapshot:
            return new_image(
                {.active = false, .on_device = false, .on_host = true, .value = images.at(copy.image).value});
        case CopyKind::kRestore:
            images.at(copy.restored).unsettled = false;
            images.at(copy.restored).source = 0;
            return 0;
    }
    return 0;
}

CopyRecord ContextModel::submit(CopyRecord copy) {
    copy.ticket = {++submitted};
    return copy;
}

void ContextModel::list(Key checkpoint) {
    const CheckpointRecord& record = checkpoints.at(checkpoint);
    auto& listed = owners.at(record.owner).checkpoints;
    const auto after =
        std::ranges::find_if(listed, [&](Key other) { return checkpoints.at(other).frontier() > record.frontier(); });
    listed.insert(after, checkpoint);
}

CheckpointRecord ContextModel::unlist(Key checkpoint) {
    CheckpointRecord record = checkpoints.at(checkpoint);
    checkpoints.erase(checkpoint);
    OwnerRecord& owner = owners.at(record.owner);
    std::erase(owner.checkpoints, checkpoint);
    if (owner.role == OwnerRole::kActive || !owner.checkpoints.empty()) return record;
    owners.erase(record.owner);
    if (transition) transition->owners_gone.push_back(record.owner);
    return record;
}

void ContextModel::discard(Key checkpoint) {
    CheckpointRecord record = unlist(checkpoint);
    release_or_condemn({std::move(record.view), record.image});
}

std::vector<Key> ContextModel::deeper(Key source, int frontier) const {
    std::vector<Key> found;
    for (const Key key : owners.at(checkpoints.at(source).owner).checkpoints)
        if (key != source && checkpoints.at(key).frontier() > frontier) found.push_back(key);
    return found;
}

int ContextModel::lanes_ending() const {
    return static_cast<int>(std::ranges::count_if(
        condemned, [&](const CondemnedRecord& parts) { return parts.image != 0 && images.at(parts.image).active; }));
}

std::string ContextModel::text() const {
    std::string all;
    const auto add_view = [&](const ViewRecord& view) {
        all += view.active ? " active" : " frozen";
        all += " frontier " + std::to_string(view.frontier) + " reserved " + std::to_string(view.reserved) + " pages";
        for (const PageKey page : view.pages) {
            const PageRecord& record = pages.at(page);
            all += ' ' + std::to_string(page) + (record.on_device ? "d" : "") + (record.on_host ? "h" : "");
        }
        if (view.tail_source != 0) all += " tail of " + std::to_string(view.tail_source);
    };
    for (const auto& [key, sequence] : sequences) {
        all += "sequence " + std::to_string(key) + " owner " + std::to_string(sequence.owner) + " image " +
               std::to_string(sequence.image) + " waits " + std::to_string(sequence.waits);
        add_view(sequence.view);
        all += '\n';
    }
    for (const auto& [key, checkpoint] : checkpoints) {
        all += "checkpoint " + std::to_string(key) + " owner " + std::to_string(checkpoint.owner) + " image " +
               std::to_string(checkpoint.image) + " copies " + std::to_string(checkpoint.open_copies);
        add_view(checkpoint.view);
        all += '\n';
    }
    for (const auto& [key, image] : images)
        all += "image " + std::to_string(key) + (image.active ? " active" : " frozen") +
               (image.on_device ? " device" : "") + (image.on_host ? " host" : "") + " source " +
               std::to_string(image.source) + " pins " + std::to_string(image_pins(key)) + '\n';
    all += std::to_string(jobs.size()) + " jobs, " + std::to_string(draining.size()) + " draining, " +
           std::to_string(condemned.size()) + " condemned, transition " +
           (transition ? std::to_string(static_cast<int>(transition->phase)) : "none") + '\n';
    return all;
}

}  // namespace ninfer::sim
