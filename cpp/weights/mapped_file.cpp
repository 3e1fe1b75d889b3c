#include "cpp/weights/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

#include "cpp/base/error.h"

namespace ninfer {

namespace {

[[noreturn]] void throw_system_error(const std::string& path, const char* call) {
    throw FileError(path, call, "a readable file", std::strerror(errno));
}

}  // namespace

MappedFile::MappedFile(std::string path) : path_(std::move(path)) {
    const int descriptor = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) throw_system_error(path_, "open");
    struct stat status{};
    void* mapping = nullptr;
    const bool known = ::fstat(descriptor, &status) == 0;
    const auto size = known ? static_cast<std::size_t>(status.st_size) : 0;
    if (known && size > 0) mapping = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
    const int saved_error = errno;
    ::close(descriptor);
    errno = saved_error;
    if (!known) throw_system_error(path_, "stat");
    if (mapping == MAP_FAILED) throw_system_error(path_, "mmap");
    data_ = static_cast<const std::byte*>(mapping);
    bytes_ = size;
}

MappedFile::~MappedFile() {
    if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), bytes_);
}

std::span<const std::byte> MappedFile::bytes(std::size_t offset, std::size_t count, const std::string& key) const {
    if (offset > bytes_ || count > bytes_ - offset)
        throw FileError(path_, key,
                        "bytes " + std::to_string(offset) + " + " + std::to_string(count) + " inside the file",
                        std::to_string(bytes_) + " bytes");
    return {data_ + offset, count};
}

void MappedFile::drop(std::size_t offset, std::size_t count) const noexcept {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const std::size_t begin = (offset + page - 1) / page * page;
    const std::size_t end = (offset + count) / page * page;
    if (begin < end) ::madvise(const_cast<std::byte*>(data_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace ninfer
