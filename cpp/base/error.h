#pragma once

// The short list of exceptions for a failing world. Our own bugs assert, an expected "no" is a Result. A call to the
// system that failed over neither a file nor memory is a std::system_error, OSError in Python.

#include <stdexcept>
#include <string>

namespace ninfer {

// A file cannot be opened, mapped or read as it must be. Becomes ninfer.errors.ModelFileError in Python.
class FileError : public std::runtime_error {
   public:
    FileError(std::string file, std::string key, std::string expected, std::string found)
        : std::runtime_error(file + ": " + key + ": expected " + expected + ", found " + found),
          file_(std::move(file)),
          key_(std::move(key)),
          expected_(std::move(expected)),
          found_(std::move(found)) {}

    const std::string& file() const noexcept { return file_; }
    const std::string& key() const noexcept { return key_; }
    const std::string& expected() const noexcept { return expected_; }
    const std::string& found() const noexcept { return found_; }

   private:
    std::string file_;
    std::string key_;
    std::string expected_;
    std::string found_;
};

// The machine refused memory; the message names what it was for and how many bytes.
class OutOfMemoryError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

}  // namespace ninfer
