#include "cpp/weights/weight_store.h"

#include <utility>

#include "cpp/base/assert.h"

namespace ninfer {

void WeightStore::add_matrix(const std::string& name, HostBuffer buffer, const WeightView& view) {
    NINFER_ASSERT(!contains(name), name.c_str());
    NINFER_ASSERT(view.data == buffer.data(), name.c_str());
    NINFER_ASSERT_EQ(view.total_bytes(), buffer.size());
    total_bytes_ += buffer.size();
    matrices_.emplace(name, PackedMatrix{std::move(buffer), view});
}

void WeightStore::add_vector(const std::string& name, std::vector<float> values) {
    NINFER_ASSERT(!contains(name), name.c_str());
    total_bytes_ += values.size() * sizeof(float);
    vectors_.emplace(name, std::move(values));
}

bool WeightStore::contains(const std::string& name) const {
    return matrices_.contains(name) || vectors_.contains(name);
}

WeightView WeightStore::matrix(const std::string& name, std::int64_t out_features, std::int64_t in_features) const {
    const auto found = matrices_.find(name);
    NINFER_ASSERT(found != matrices_.end(), name.c_str());
    NINFER_ASSERT_EQ(found->second.view.out_features, out_features);
    NINFER_ASSERT_EQ(found->second.view.in_features, in_features);
    return found->second.view;
}

const float* WeightStore::vector(const std::string& name, std::size_t size) const {
    const auto found = vectors_.find(name);
    NINFER_ASSERT(found != vectors_.end(), name.c_str());
    NINFER_ASSERT_EQ(found->second.size(), size);
    return found->second.data();
}

const float* WeightStore::derive(const std::string& name, std::vector<float> values) {
    add_vector(name, std::move(values));
    return vectors_.at(name).data();
}

}  // namespace ninfer
