#include "cpp/weights/weight_loader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>

#include "cpp/base/error.h"
#include "cpp/weights/pack_weight.h"
#include "cpp/weights/unpack_weight.h"
#include "tests/support/temporary_folder.h"

namespace ninfer {
namespace {

constexpr FileEncoding kEncodings[] = {FileEncoding::kF32,  FileEncoding::kF16,  FileEncoding::kBf16,
                                       FileEncoding::kQ8_0, FileEncoding::kQ4_0, FileEncoding::kQ4_1};
constexpr WeightStorage kStorages[] = {WeightStorage::kF32, WeightStorage::kBf16, WeightStorage::kQ8,
                                       WeightStorage::kQ4};
constexpr std::int64_t kRows = 33;
constexpr std::int64_t kColumns = 64;

using Values = std::vector<float>;

// Multiples of 1/4 up to 2, exact in f32 and bf16.
Values small_values() {
    Values values(static_cast<std::size_t>(kRows * kColumns));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.25F * static_cast<float>(i % 17) - 2.0F;
    return values;
}

Values values_with_nan() {
    Values values = small_values();
    values[kColumns * 20 + 7] = std::numeric_limits<float>::quiet_NaN();
    return values;
}

MatrixTarget target(WeightStorage storage) { return {"blk.0.weight", kRows, kColumns, storage}; }

void add(WeightLoader& loader, const MatrixTarget& matrix, const Values& values,
         FileEncoding encoding = FileEncoding::kF32) {
    loader.add_matrix(matrix, std::as_bytes(std::span(values)), encoding, "model.gguf");
}

template <typename Work>
std::optional<FileError> file_error(Work&& work) {
    try {
        work();
    } catch (const FileError& error) {
        return error;
    }
    return std::nullopt;
}

// Nothing of a refused matrix stays, and the same name can be added afterwards.
void expect_untouched_and_retry(WeightLoader& loader, WeightStorage storage) {
    EXPECT_FALSE(loader.store()->contains("blk.0.weight"));
    EXPECT_EQ(loader.store()->total_bytes(), 0U);
    add(loader, target(storage), small_values());
    EXPECT_EQ(loader.store()->total_bytes(), packed_weight_bytes(kRows, kColumns, storage));
    Values unpacked(static_cast<std::size_t>(kRows * kColumns));
    unpack_weight(loader.store()->matrix("blk.0.weight", kRows, kColumns), unpacked.data());
    // q8 and q4 round: a step of q4 over a range of 4 is 4 / 15.
    for (std::size_t i = 0; i < unpacked.size(); ++i) ASSERT_NEAR(unpacked[i], small_values()[i], 0.14F) << i;
    if (storage == WeightStorage::kF32 || storage == WeightStorage::kBf16) {
        EXPECT_EQ(unpacked, small_values());
    }
}

TEST(WeightLoaderTest, AWeightThatCannotBeStoredLeavesTheStoreAsItWas) {
    for (const auto storage : kStorages) {
        WeightLoader loader(2);
        for (int attempt = 0; attempt < 2; ++attempt) {
            const auto error = file_error([&] { add(loader, target(storage), values_with_nan()); });
            ASSERT_TRUE(error.has_value());
            EXPECT_EQ(error->file(), "model.gguf");
            EXPECT_EQ(error->key(), "blk.0.weight");
            EXPECT_NE(error->found().find("at [20, 7]"), std::string::npos) << error->found();
        }
        expect_untouched_and_retry(loader, storage);
    }
}

TEST(WeightLoaderTest, AWrongByteCountLeavesTheStoreAsItWas) {
    for (const auto storage : kStorages) {
        WeightLoader loader(2);
        for (const std::int64_t rows : {kRows - 1, kRows + 1}) {
            MatrixTarget wrong = target(storage);
            wrong.out_features = rows;
            const auto error = file_error([&] { add(loader, wrong, small_values()); });
            ASSERT_TRUE(error.has_value());
            EXPECT_EQ(error->expected(), std::to_string(rows * kColumns * 4) + " bytes");
            EXPECT_EQ(error->found(), std::to_string(kRows * kColumns * 4) + " bytes");
        }
        expect_untouched_and_retry(loader, storage);
    }
}

TEST(WeightLoaderTest, NoRowsOrColumnsAreRefused) {
    for (const auto encoding : kEncodings)
        for (const auto& [rows, columns] : {std::pair<std::int64_t, std::int64_t>{0, 32}, {5, 0}, {0, 0}, {-1, 32}}) {
            WeightLoader loader(1);
            const MatrixTarget empty{"blk.0.weight", rows, columns, WeightStorage::kQ8};
            const auto error = file_error([&] { add(loader, empty, {}, encoding); });
            ASSERT_TRUE(error.has_value()) << rows << " x " << columns << " " << to_string(encoding);
            EXPECT_EQ(error->expected(), "at least one row and one column");
            EXPECT_EQ(error->found(), "[" + std::to_string(rows) + ", " + std::to_string(columns) + "]");
            EXPECT_EQ(loader.store()->total_bytes(), 0U);
        }
}

TEST(WeightLoaderTest, BlocksThatDoNotFillARowAreRefused) {
    WeightLoader loader(1);
    const MatrixTarget odd{"blk.0.weight", 2, 40, WeightStorage::kQ8};
    const auto error = file_error([&] { add(loader, odd, Values(40), FileEncoding::kQ8_0); });
    ASSERT_TRUE(error.has_value());
    EXPECT_EQ(error->found(), "40");
    EXPECT_FALSE(loader.store()->contains("blk.0.weight"));
}

TEST(WeightLoaderTest, ATruncatedFileLeavesTheStoreAsItWas) {
    const testing_support::TemporaryFolder folder;
    const Values values = small_values();
    std::vector<char> content(values.size() * sizeof(float) + 8);
    std::memcpy(content.data() + 8, values.data(), values.size() * sizeof(float));
    const MappedFile file(folder.write("model.gguf", content));
    WeightLoader loader(2);
    const std::size_t count = content.size() - 8;
    EXPECT_TRUE(file_error([&] {
                    loader.add_matrix(target(WeightStorage::kF32), file, 9, count, FileEncoding::kF32);
                }).has_value());
    EXPECT_EQ(loader.store()->total_bytes(), 0U);
    loader.add_matrix(target(WeightStorage::kF32), file, 8, count, FileEncoding::kF32);
    Values unpacked(values.size());
    unpack_weight(loader.store()->matrix("blk.0.weight", kRows, kColumns), unpacked.data());
    EXPECT_EQ(unpacked, values);

    std::filesystem::resize_file(file.path(), 100);
    MatrixTarget second = target(WeightStorage::kF32);
    second.name = "blk.1.weight";
    EXPECT_TRUE(file_error([&] { loader.add_matrix(second, file, 8, count, FileEncoding::kF32); }).has_value());
    EXPECT_FALSE(loader.store()->contains("blk.1.weight"));
}

TEST(WeightLoaderTest, BytesOfMatricesAndVectorsAreCounted) {
    WeightLoader loader(1);
    add(loader, target(WeightStorage::kQ8), small_values());
    loader.add_vector("norm", Values{1.0F, 2.0F, 3.0F});
    const std::size_t matrix = packed_weight_bytes(kRows, kColumns, WeightStorage::kQ8);
    EXPECT_EQ(loader.store()->total_bytes(), matrix + 12);
    EXPECT_EQ(loader.store()->vector("norm", 3)[2], 3.0F);
    EXPECT_EQ(loader.store()->derive("norm + 1", {2.0F, 3.0F})[1], 3.0F);
    EXPECT_EQ(loader.store()->total_bytes(), matrix + 20);
}

TEST(WeightStoreDeathTest, ANameIsAddedOnceAndReadInItsShape) {
    testing::FLAGS_gtest_death_test_style = "threadsafe";
    WeightLoader loader(1);
    add(loader, target(WeightStorage::kF32), small_values());
    EXPECT_DEATH(add(loader, target(WeightStorage::kF32), small_values()), "blk.0.weight");
    EXPECT_DEATH(loader.add_vector("blk.0.weight", Values{1.0F}), "blk.0.weight");
    EXPECT_DEATH(loader.store()->matrix("blk.1.weight", kRows, kColumns), "blk.1.weight");
    EXPECT_DEATH(loader.store()->matrix("blk.0.weight", kRows, kColumns + 1), "in_features");
    EXPECT_DEATH(loader.store()->vector("norm", 1), "norm");
}

}  // namespace
}  // namespace ninfer
