#include "cpp/weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "cpp/base/assert.h"
#include "cpp/base/error.h"

namespace ninfer {

namespace {

[[noreturn]] void throw_system_error(const std::string& path, const char* call) {
    throw FileError(path, call, "a readable file", std::strerror(errno));
}

}  // namespace

MappedFile::Descriptor::~Descriptor() {
    if (value_ >= 0) ::close(value_);
}

// O_NONBLOCK means nothing for a regular file; without it, opening a pipe would wait for its writer.
MappedFile::MappedFile(std::string path)
    : path_(std::move(path)), descriptor_(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (descriptor_.value() < 0) throw_system_error(path_, "open");
    bytes_ = size_now();
    if (bytes_ == 0) return;
    void* const mapping = ::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, descriptor_.value(), 0);
    if (mapping == MAP_FAILED) throw_system_error(path_, "mmap");
    data_ = static_cast<const std::byte*>(mapping);
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), bytes_);
}

std::size_t MappedFile::size_now() const {
    struct stat status{};
    if (::fstat(descriptor_.value(), &status) != 0) throw_system_error(path_, "stat");
    if (!S_ISREG(status.st_mode))
        throw FileError(path_, "open", "a regular file", S_ISDIR(status.st_mode) ? "a directory" : "a special file");
    return static_cast<std::size_t>(status.st_size);
}

std::span<const std::byte> MappedFile::bytes(std::size_t offset, std::size_t count, const std::string& key) const {
    if (offset > bytes_ || count > bytes_ - offset)
        throw FileError(path_, key,
                        "bytes " + std::to_string(offset) + " + " + std::to_string(count) + " inside the file",
                        std::to_string(bytes_) + " bytes");
    const std::size_t now = size_now();
    if (now < bytes_)
        throw FileError(path_, key, "a file that stays " + std::to_string(bytes_) + " bytes long while it is read",
                        std::to_string(now) + " bytes");
    return {data_ + offset, count};
}

void MappedFile::drop(std::size_t offset, std::size_t count) const noexcept {
    NINFER_ASSERT_LE(count, bytes_);
    NINFER_ASSERT_LE(offset, bytes_ - count);
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t begin = (offset + page - 1) / page * page;
    const std::size_t end = (offset + count) / page * page;
    if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace ninfer
