#pragma once

// All weights of one model, by name, in the form that ops read: matrices packed in panels, vectors in f32. Filled once
// by the loader, read-only afterwards. Not thread-safe while being filled.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cpp/memory/host_buffer.h"
#include "cpp/tensor/weight_view.h"

namespace ninfer {

class WeightStore {
   public:
    // Takes over a matrix that is already packed: view.data is the buffer's. A name is added once (asserted), so the
    // loader adds only what it could pack.
    void add_matrix(const std::string& name, HostBuffer buffer, const WeightView& view);
    void add_vector(const std::string& name, std::vector<float> values);

    bool contains(const std::string& name) const;
    // Assert that the name exists with this shape: the loader has compared every shape with the configuration before.
    WeightView matrix(const std::string& name, std::int64_t out_features, std::int64_t in_features) const;
    const float* vector(const std::string& name, std::size_t size) const;

    // A vector that a model derived from stored ones (1 + weight, exp(A_log), transposed taps), owned here.
    const float* derive(const std::string& name, std::vector<float> values);

    std::size_t total_bytes() const noexcept { return total_bytes_; }

   private:
    struct PackedMatrix {
        HostBuffer buffer;
        WeightView view;
    };

    std::map<std::string, PackedMatrix> matrices_;
    std::map<std::string, std::vector<float>> vectors_;
    std::size_t total_bytes_ = 0;
};

}  // namespace ninfer
