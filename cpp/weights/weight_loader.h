#pragma once

// Fills a WeightStore: packs matrices from mapped files or from memory, with the loader's own threads.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "cpp/base/thread_pool.h"
#include "cpp/tensor/dtype.h"
#include "cpp/weights/mapped_file.h"
#include "cpp/weights/weight_store.h"

namespace ninfer {

// A matrix as it is to be stored.
struct MatrixTarget {
    std::string name;
    std::int64_t out_features = 0;
    std::int64_t in_features = 0;
    WeightStorage storage = WeightStorage::kF32;
};

class WeightLoader {
   public:
    explicit WeightLoader(int threads) : pool_(threads), store_(std::make_shared<WeightStore>()) {}

    // The store being filled; the loader may go once it is complete.
    const std::shared_ptr<WeightStore>& store() const noexcept { return store_; }

    // Packs bytes [offset, offset + count) of the file, then lets the kernel drop them. Throws FileError naming the
    // tensor when the matrix has no row or column, or the bytes are not all there or hold a weight that cannot be
    // stored; OutOfMemoryError when the packed form has no room. After either the store is as it was before.
    void add_matrix(const MatrixTarget& target, const MappedFile& file, std::size_t offset, std::size_t count,
                    FileEncoding encoding);
    // The same from encoded bytes in memory; `origin` names their file in errors.
    void add_matrix(const MatrixTarget& target, std::span<const std::byte> bytes, FileEncoding encoding,
                    const std::string& origin);
    void add_vector(const std::string& name, std::span<const float> values);

   private:
    ThreadPool pool_;
    std::shared_ptr<WeightStore> store_;
};

}  // namespace ninfer
