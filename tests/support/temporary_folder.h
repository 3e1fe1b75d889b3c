#pragma once

// A folder of one test, removed with all it holds.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace ninfer::testing_support {

class TemporaryFolder {
   public:
    TemporaryFolder() {
        std::string pattern = testing::TempDir() + "ninfer_test_XXXXXX";
        path_ = ::mkdtemp(pattern.data());
    }
    ~TemporaryFolder() { std::filesystem::remove_all(path_); }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;

    std::string path(const std::string& name) const { return path_ / name; }
    std::string write(const std::string& name, const std::vector<char>& content) const {
        std::ofstream(path(name), std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
        return path(name);
    }

   private:
    std::filesystem::path path_;
};

}  // namespace ninfer::testing_support
