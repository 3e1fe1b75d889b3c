#include "cpp/weights/weight_loader.h"

#include <string_view>

#include "cpp/base/error.h"
#include "cpp/weights/pack_weight.h"

namespace ninfer {

void WeightLoader::add_matrix(const MatrixTarget& target, const MappedFile& file, std::size_t offset, std::size_t count,
                              FileEncoding encoding) {
    add_matrix(target, file.bytes(offset, count, target.name), encoding, file.path());
    file.drop(offset, count);
}

void WeightLoader::add_matrix(const MatrixTarget& target, std::span<const std::byte> bytes, FileEncoding encoding,
                              const std::string& origin) {
    const PackSource source{bytes.data(), bytes.size(), encoding, target.out_features, target.in_features};
    auto& matrix = store_->add_matrix(target.name, target.out_features, target.in_features, target.storage);
    const auto packed = pack_weight(pool_, source, target.storage, matrix.buffer.data());
    if (packed) return;
    const auto& refusal = packed.error();
    throw FileError(origin, target.name,
                    "finite weights that " + std::string(to_string(target.storage)) + " storage can hold",
                    refusal.reason + " at [" + std::to_string(refusal.out_feature) + ", " +
                        std::to_string(refusal.in_feature) + "]");
}

void WeightLoader::add_vector(const std::string& name, std::span<const float> values) {
    store_->add_vector(name, std::vector<float>(values.begin(), values.end()));
}

}  // namespace ninfer
