#include "cpp/weights/mapped_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>

#include "cpp/base/error.h"
#include "tests/support/temporary_folder.h"

namespace ninfer {
namespace {

constexpr std::size_t kBytes = 3 * 4096 + 100;
constexpr std::size_t kHuge = std::numeric_limits<std::size_t>::max();

class MappedFileTest : public testing::Test {
   protected:
    // Byte i is i mod 251.
    std::string written(std::size_t count) const {
        std::vector<char> content(count);
        for (std::size_t i = 0; i < count; ++i) content[i] = static_cast<char>(i % 251);
        return folder_.write("model.bin", content);
    }
    testing_support::TemporaryFolder folder_;
};

// What the error of `work` says was found, or nothing if it throws none.
template <typename Work>
std::optional<FileError> file_error(Work&& work) {
    try {
        work();
    } catch (const FileError& error) {
        return error;
    }
    return std::nullopt;
}

void expect_refused(const std::string& path, const std::string& found) {
    const auto error = file_error([&] { const MappedFile file(path); });
    ASSERT_TRUE(error.has_value()) << path;
    EXPECT_EQ(error->file(), path);
    EXPECT_EQ(error->found(), found);
}

void expect_content(const MappedFile& file, std::size_t offset, std::size_t count) {
    const auto bytes = file.bytes(offset, count, "weight");
    ASSERT_EQ(bytes.size(), count);
    for (std::size_t i = 0; i < count; ++i) ASSERT_EQ(static_cast<std::size_t>(bytes[i]), (offset + i) % 251) << i;
}

TEST_F(MappedFileTest, HoldsTheBytesOfTheFile) {
    const MappedFile file(written(kBytes));
    EXPECT_EQ(file.size(), kBytes);
    expect_content(file, 0, kBytes);
    expect_content(file, 4095, 2);
    expect_content(file, kBytes, 0);
}

TEST_F(MappedFileTest, RefusesWhatIsNoRegularFile) {
    expect_refused(folder_.path("missing"), "No such file or directory");
    expect_refused(folder_.path(""), "a directory");
    // Nobody writes into it: an open that waits for a writer would never end.
    const std::string pipe = folder_.path("pipe");
    ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
    expect_refused(pipe, "a special file");
    expect_refused("/dev/null", "a special file");
}

TEST_F(MappedFileTest, AnEmptyFileHasNoBytes) {
    const MappedFile file(written(0));
    EXPECT_EQ(file.size(), 0U);
    EXPECT_TRUE(file.bytes(0, 0, "weight").empty());
    EXPECT_TRUE(file_error([&] { file.bytes(0, 1, "weight"); }).has_value());
    file.drop(0, 0);
}

TEST_F(MappedFileTest, BytesOutsideTheFileAreAnErrorThatNamesTheKey) {
    const MappedFile file(written(kBytes));
    const std::pair<std::size_t, std::size_t> ranges[] = {{0, kBytes + 1}, {kBytes, 1},    {kBytes + 1, 0}, {kHuge, 1},
                                                          {1, kHuge},      {kHuge, kHuge}, {kHuge - 9, 10}};
    for (const auto& [offset, count] : ranges) {
        const auto error = file_error([&] { file.bytes(offset, count, "layers.3.weight"); });
        ASSERT_TRUE(error.has_value()) << offset << " + " << count;
        EXPECT_EQ(error->key(), "layers.3.weight");
        EXPECT_EQ(error->found(), std::to_string(kBytes) + " bytes");
    }
}

TEST_F(MappedFileTest, AFileThatShrankIsAnErrorAndNoSignal) {
    const std::string path = written(kBytes);
    const MappedFile file(path);
    expect_content(file, 0, kBytes);
    for (const std::size_t left : {kBytes - 1, std::size_t{4096}, std::size_t{0}}) {
        std::filesystem::resize_file(path, left);
        const auto error = file_error([&] { file.bytes(0, 10, "weight"); });
        ASSERT_TRUE(error.has_value()) << left;
        EXPECT_EQ(error->found(), std::to_string(left) + " bytes");
    }
}

TEST_F(MappedFileTest, AFileThatGrewIsStillReadable) {
    const std::string path = written(kBytes);
    const MappedFile file(path);
    std::filesystem::resize_file(path, 2 * kBytes);
    expect_content(file, 0, kBytes);
    EXPECT_TRUE(file_error([&] { file.bytes(0, kBytes + 1, "weight"); }).has_value());
}

TEST_F(MappedFileTest, ARemovedFileStaysReadable) {
    const std::string path = written(kBytes);
    const MappedFile file(path);
    std::filesystem::remove(path);
    expect_content(file, 0, kBytes);
}

TEST_F(MappedFileTest, DroppedBytesAreReadAgain) {
    const MappedFile file(written(kBytes));
    expect_content(file, 0, kBytes);
    const std::pair<std::size_t, std::size_t> ranges[] = {{0, kBytes}, {1, 4095}, {4096, 4096}, {kBytes, 0}, {100, 7}};
    for (const auto& [offset, count] : ranges) {
        file.drop(offset, count);
        expect_content(file, 0, kBytes);
    }
}

}  // namespace
}  // namespace ninfer
