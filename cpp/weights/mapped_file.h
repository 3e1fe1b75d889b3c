#pragma once

// A whole regular file mapped read-only. The kernel may drop and re-read its pages, so it costs no anonymous memory.
//
// Reading a mapped page beyond the end of its file stops the process (SIGBUS). So bytes() compares the file's present
// size with the mapped one; what remains is a file that shrinks between that check and the last read of the bytes.

#include <cstddef>
#include <span>
#include <string>

namespace ninfer {

class MappedFile {
   public:
    // Throws FileError when the path is not a regular file that can be opened and mapped. Never waits, as for a pipe.
    explicit MappedFile(std::string path);
    ~MappedFile();
    MappedFile(const MappedFile&) = delete;
    MappedFile& operator=(const MappedFile&) = delete;

    const std::string& path() const noexcept { return path_; }
    std::size_t size() const noexcept { return bytes_; }

    // Bytes [offset, offset + count). Throws FileError naming `key` when they are not all inside the file, or when the
    // file has become shorter than it was when mapped.
    std::span<const std::byte> bytes(std::size_t offset, std::size_t count, const std::string& key) const;

    // Tells the kernel that these bytes, which lie inside the file, will not be read again soon.
    void drop(std::size_t offset, std::size_t count) const noexcept;

   private:
    // Owns the open file, which bytes() asks for its size.
    class Descriptor {
       public:
        explicit Descriptor(int value) : value_(value) {}
        ~Descriptor();
        Descriptor(const Descriptor&) = delete;
        Descriptor& operator=(const Descriptor&) = delete;
        int value() const noexcept { return value_; }

       private:
        int value_;
    };

    std::size_t size_now() const;

    std::string path_;
    Descriptor descriptor_;
    const std::byte* data_ = nullptr;
    std::size_t bytes_ = 0;
};

}  // namespace ninfer
