#pragma once

// Wakes a thread that waits for file descriptors, an event loop, from any other thread: a counter of the kernel
// (eventfd) that is readable from `signal` to the next `acknowledge`. Linux only.
//
// No call waits or gives anything up. Python's interpreter lock, which the bindings of such short calls keep anyway, is
// kept on purpose here: a caller who let go of it in the moment in which he wakes somebody that wants it would not get
// it back before that one is through with it.
//
// Nothing is lost if what the signal is about is stored before `signal`, and looked for after `acknowledge`: whatever
// the look misses was stored after it, so its signal is still to come.

namespace ninfer {

class WakeUp {
   public:
    // Throws std::system_error where the process or the machine has no file descriptor left. A program that is started
    // by this process does not inherit it.
    WakeUp();
    // Whoever waits for the descriptor has to stop first: its number may be another file's right afterwards.
    ~WakeUp();
    WakeUp(const WakeUp&) = delete;
    WakeUp& operator=(const WakeUp&) = delete;

    int file_descriptor() const noexcept { return descriptor_; }

    // From any thread. Signals add up to one until they are acknowledged. Throws std::system_error if the descriptor is
    // no eventfd any more.
    void signal() const;

    // Whether there was a signal since the last call. Throws as `signal` does.
    bool acknowledge() const;

   private:
    int descriptor_;
};

}  // namespace ninfer
