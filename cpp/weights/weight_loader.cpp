#include "cpp/weights/weight_loader.h"

#include <string_view>
#include <utility>

#include "cpp/base/error.h"
#include "cpp/weights/pack_weight.h"

namespace ninfer {

namespace {

void check_bytes(const MatrixTarget& target, const PackSource& source, std::size_t found, const std::string& origin) {
    if (target.out_features < 1 || target.in_features < 1)
        throw FileError(origin, target.name, "at least one row and one column",
                        "[" + std::to_string(target.out_features) + ", " + std::to_string(target.in_features) + "]");
    if (is_block_encoding(source.encoding) && target.in_features % kQuantGroup != 0)
        throw FileError(origin, target.name, "a multiple of 32 columns for " + std::string(to_string(source.encoding)),
                        std::to_string(target.in_features));
    const auto row_bytes = encoded_row_bytes(source.encoding, target.in_features);
    const auto expected = static_cast<std::size_t>(target.out_features) * row_bytes;
    if (found != expected)
        throw FileError(origin, target.name, std::to_string(expected) + " bytes", std::to_string(found) + " bytes");
}

}  // namespace

void WeightLoader::add_matrix(const MatrixTarget& target, const MappedFile& file, std::size_t offset, std::size_t count,
                              FileEncoding encoding) {
    add_matrix(target, file.bytes(offset, count, target.name), encoding, file.path());
    file.drop(offset, count);
}

void WeightLoader::add_matrix(const MatrixTarget& target, std::span<const std::byte> bytes, FileEncoding encoding,
                              const std::string& origin) {
    const PackSource source{bytes.data(), encoding, target.out_features, target.in_features};
    check_bytes(target, source, bytes.size(), origin);
    HostBuffer buffer(packed_weight_bytes(target.out_features, target.in_features, target.storage));
    const auto packed = pack_weight(pool_, source, target.storage, buffer.data());
    if (packed) {
        store_->add_matrix(target.name, std::move(buffer), packed.value());
        return;
    }
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
