#include "cpp/base/wake_up.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ninfer {

namespace {

[[noreturn]] void throw_system_error(const char* call) {
    throw std::system_error(errno, std::generic_category(), call);
}

}  // namespace

WakeUp::WakeUp() : descriptor_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
    if (descriptor_ < 0) throw_system_error("eventfd");
}

WakeUp::~WakeUp() { ::close(descriptor_); }

void WakeUp::signal() const {
    // EAGAIN: the counter is full of signals, so the descriptor is readable.
    if (::eventfd_write(descriptor_, 1) != 0 && errno != EAGAIN) throw_system_error("write to an eventfd");
}

bool WakeUp::acknowledge() const {
    eventfd_t signals = 0;
    if (::eventfd_read(descriptor_, &signals) == 0) return true;
    if (errno != EAGAIN) throw_system_error("read from an eventfd");
    return false;
}

}  // namespace ninfer
