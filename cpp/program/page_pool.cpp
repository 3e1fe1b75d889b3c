#include "cpp/program/page_pool.h"

#include "cpp/base/assert.h"

namespace ninfer {

PagePool::PagePool(std::int64_t pages, std::size_t page_bytes)
    : pages_(pages), page_bytes_(page_bytes), buffer_(static_cast<std::size_t>(pages) * page_bytes) {
    NINFER_ASSERT_LE(pages, std::int64_t{INT32_MAX});  // page ids are int32
    free_.reserve(static_cast<std::size_t>(pages));
    for (std::int64_t page = pages - 1; page >= 0; --page) free_.push_back(static_cast<std::int32_t>(page));
}

void PagePool::take(std::int64_t count, std::vector<std::int32_t>& table) {
    NINFER_ASSERT_LE(count, pages_free());
    for (std::int64_t i = 0; i < count; ++i) {
        table.push_back(free_.back());
        free_.pop_back();
    }
}

void PagePool::give_back(std::vector<std::int32_t>& table) {
    free_.insert(free_.end(), table.rbegin(), table.rend());
    table.clear();
    NINFER_ASSERT_LE(pages_free(), pages_);
}

}  // namespace ninfer
