#include <nanobind/nanobind.h>

#include "cpp/base/wake_up.h"
#include "cpp/bindings/bindings.h"

namespace nb = nanobind;

namespace ninfer::bindings {

void bind_wake_up(nb::module_& module) {
    // No call_guard: that these calls keep the GIL is what they are for (wake_up.h).
    nb::class_<WakeUp>(
        module, "WakeUp",
        "Wakes a loop that waits for file descriptors; see cpp/base/wake_up.h. No call waits or releases "
        "the GIL. OSError where the system has no descriptor left.")
        .def(nb::init<>())
        .def_prop_ro("file_descriptor", &WakeUp::file_descriptor,
                     "Readable from `signal` to `acknowledge`; closed when the object goes.")
        .def("signal", &WakeUp::signal, "From any thread. Signals add up to one until they are acknowledged.")
        .def("acknowledge", &WakeUp::acknowledge, "Whether there was a signal since the last call.");
}

}  // namespace ninfer::bindings
