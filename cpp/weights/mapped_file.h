#pragma once

// A whole file mapped read-only. The kernel may drop and re-read its pages, so it costs no anonymous memory.

#include <cstddef>
#include <span>
#include <string>

namespace ninfer {

class MappedFile {
   public:
    // Throws FileError when the file cannot be opened or mapped.
    explicit MappedFile(std::string path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::string& path() const noexcept { return path_; }
    std::size_t size() const noexcept { return bytes_; }

    // Bytes [offset, offset + count). Throws FileError naming `key` when they are not all inside the file.
    std::span<const std::byte> bytes(std::size_t offset, std::size_t count, const std::string& key) const;

    // Tells the kernel that these bytes will not be read again soon.
    void drop(std::size_t offset, std::size_t count) const noexcept;

   private:
    std::string path_;
    const std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace ninfer
