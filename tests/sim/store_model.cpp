#include "tests/sim/store_model.h"

#include <algorithm>
#include <cstdio>

#include "tests/sim/sim_failure.h"

namespace ninfer::sim {
namespace {

std::uint32_t slot_of(Key handle) { return static_cast<std::uint32_t>(handle); }
std::uint32_t generation_of(Key handle) { return static_cast<std::uint32_t>(handle >> 32); }

// Within one operation, before the model learns of any: a space that is consumed gets a tail page, then others go.
constexpr std::size_t kBornBeforeOthersDie = 1;

}  // namespace

void HandleHistory::born(Key handle) {
    if (generation_of(handle) == 0 || !seen_.insert(handle).second)
        throw SimFailure("a new handle was used before: " + std::to_string(handle));
    generations_[slot_of(handle)] = generation_of(handle);
    most_alive_ = std::max(most_alive_, seen_.size() - dead_.size());
    if (generations_.size() > most_alive_ + kBornBeforeOthersDie)
        throw SimFailure("there are more slots than ever were in use: " + std::to_string(generations_.size()));
}

void HandleHistory::died(Key handle) {
    generations_[slot_of(handle)] = generation_of(handle) + 1;
    dead_.push_back(handle);
}

Refusal HandleHistory::stale(Key handle) const {
    const auto found = generations_.find(slot_of(handle));
    return {RefusalKind::kStaleHandle, generation_of(handle), found == generations_.end() ? 0 : found->second};
}

std::map<PageKey, StoreModel::PageCounts> StoreModel::recount() const {
    std::map<PageKey, PageCounts> counts;
    for (const auto& [key, space] : spaces) {
        for (const PageKey page : space.pages) {
            ++counts[page].references;
            counts[page].active_readers += space.active ? 1 : 0;
        }
        if (space.tail_source != 0) ++counts[space.tail_source].pins;
    }
    for_each_copy([&](const ModelCopy& copy) {
        if (copy.page == 0) return;
        ++counts[copy.page].pins;
        if (copy.tail != 0) ++counts[copy.tail].pins;
        counts[copy.tail != 0 ? copy.tail : copy.page].copying = true;
    });
    return counts;
}

int StoreModel::references(PageKey page) const {
    int count = 0;
    for (const auto& [key, space] : spaces) count += std::ranges::count(space.pages, page) > 0 ? 1 : 0;
    return count;
}

int StoreModel::active_readers(PageKey page) const {
    int count = 0;
    for (const auto& [key, space] : spaces)
        if (space.active) count += std::ranges::count(space.pages, page) > 0 ? 1 : 0;
    return count;
}

int StoreModel::pins(PageKey page) const {
    int count = 0;
    for_each_copy([&](const ModelCopy& copy) { count += (copy.page == page ? 1 : 0) + (copy.tail == page ? 1 : 0); });
    for (const auto& [key, space] : spaces) count += space.tail_source == page ? 1 : 0;
    return count;
}

bool StoreModel::copying(PageKey page) const {
    bool found = false;
    for_each_copy([&](const ModelCopy& copy) {
        found = found || (copy.kind == CopyKind::kTail ? copy.tail == page : copy.page == page);
    });
    return found;
}

bool StoreModel::writable(PageKey page) const {
    return pages.at(page).coverage < 64 && active_readers(page) == 1 && references(page) == 1;
}

int StoreModel::image_pins(Key image) const {
    int count = 0;
    for_each_copy(
        [&](const ModelCopy& copy) { count += (copy.image == image ? 1 : 0) + (copy.restored == image ? 1 : 0); });
    for (const auto& [key, other] : images) count += other.source == image ? 1 : 0;
    return count;
}

bool StoreModel::image_copying(Key image) const {
    bool found = false;
    for_each_copy([&](const ModelCopy& copy) {
        found = found || (copy.kind == CopyKind::kRestore ? copy.restored == image : copy.image == image);
    });
    return found;
}

UsedVector StoreModel::used() const {
    UsedVector used;
    for (const auto& [key, page] : pages) {
        used.device_pages += page.on_device ? 1 : 0;
        used.host_blocks += page.on_host ? size_.blocks_per_page() : 0;
    }
    for (const auto& [key, space] : spaces) used.device_pages_reserved += space.reserved;
    for (const auto& [key, image] : images) {
        if (image.on_device) ++(image.active ? used.image_slots_active : used.image_slots_checkpoint);
        used.host_blocks += image.on_host ? size_.blocks_per_image() : 0;
    }
    for_each_copy([&](const ModelCopy& copy) {
        used.device_pages += copy.kind == CopyKind::kPageToDevice ? 1 : 0;
        used.image_slots_checkpoint += copy.kind == CopyKind::kImageToDevice ? 1 : 0;
        used.host_blocks += copy.kind == CopyKind::kPageToHost ? size_.blocks_per_page() : 0;
        if (copy.kind == CopyKind::kImageToHost || copy.kind == CopyKind::kSnapshot)
            used.host_blocks += size_.blocks_per_image();
    });
    return used;
}

int StoreModel::pages_free() const {
    const UsedVector now = used();
    return size_.pages - static_cast<int>(now.device_pages + now.device_pages_reserved);
}

int StoreModel::blocks_free() const { return size_.host_blocks - static_cast<int>(used().host_blocks); }

int StoreModel::active_slots_free() const { return size_.active_slots - static_cast<int>(used().image_slots_active); }

int StoreModel::checkpoint_slots_free() const {
    return size_.checkpoint_slots - static_cast<int>(used().image_slots_checkpoint);
}

PageKey StoreModel::page_of(Key handle) const {
    for (const auto& [key, page] : pages)
        if (page.handle == handle) return key;
    return 0;
}

PageKey StoreModel::new_page() {
    pages.emplace(++last_page_, ModelPage{});
    return last_page_;
}

void StoreModel::sweep() {
    std::set<PageKey> seen;
    for (const auto& [key, space] : spaces) seen.insert(space.pages.begin(), space.pages.end());
    for (auto place = pages.begin(); place != pages.end();) {
        if (seen.contains(place->first)) {
            ++place;
            continue;
        }
        if (place->second.handle != 0) page_handles.died(place->second.handle);
        place = pages.erase(place);
    }
}

void StoreModel::end_space(Key space) {
    spaces.erase(space);
    space_handles.died(space);
    sweep();
}

void StoreModel::end_image(Key image) {
    images.erase(image);
    image_handles.died(image);
}

void StoreModel::end_copy(Key copy, bool drains) {
    if (drains) draining.push_back(copies.at(copy));
    copies.erase(copy);
    copy_handles.died(copy);
}

std::string StoreModel::text() const {
    std::string all;
    char line[256];
    const auto add = [&](int count) { all.append(line, static_cast<std::size_t>(std::max(count, 0))).push_back('\n'); };
    for (const auto& [key, space] : spaces) {
        add(std::snprintf(line, sizeof line, "space %llx %s frontier %d reserved %d tail_source %d pages", shown(key),
                          space.active ? "active" : "frozen", space.frontier, space.reserved, space.tail_source));
        all.pop_back();
        for (const PageKey page : space.pages) all += ' ' + std::to_string(page);
        all += '\n';
    }
    for (const auto& [key, page] : pages)
        add(std::snprintf(line, sizeof line, "page %d handle %llx coverage %d%s%s references %d pins %d", key,
                          shown(page.handle), page.coverage, page.on_device ? " device" : "",
                          page.on_host ? " host" : "", references(key), pins(key)));
    for (const auto& [key, image] : images)
        add(std::snprintf(line, sizeof line, "image %llx %s%s%s%s references %d pins %d source %llx", shown(key),
                          image.active ? "active" : "frozen", image.unsettled ? " unsettled" : "",
                          image.on_device ? " device" : "", image.on_host ? " host" : "", image.references,
                          image_pins(key), shown(image.source)));
    for_each_copy([&](const ModelCopy& copy) {
        add(std::snprintf(line, sizeof line, "copy kind %d page %d tail %d space %llx image %llx restored %llx",
                          static_cast<int>(copy.kind), copy.page, copy.tail, shown(copy.space), shown(copy.image),
                          shown(copy.restored)));
    });
    return all;
}

}  // namespace ninfer::sim
