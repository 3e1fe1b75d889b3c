#include "cpp/weights/weight_store.h"

#include "cpp/base/assert.h"

namespace ninfer {

WeightStore::PackedMatrix& WeightStore::add_matrix(const std::string& name, std::int64_t out_features,
                                                   std::int64_t in_features, WeightStorage storage) {
    NINFER_ASSERT(!contains(name), name.c_str());
    WeightView view{nullptr, storage, out_features, in_features};
    HostBuffer buffer(view.total_bytes());
    view.data = buffer.data();
    total_bytes_ += buffer.size();
    return matrices_.emplace(name, PackedMatrix{std::move(buffer), view}).first->second;
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
