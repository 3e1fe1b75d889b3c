#include "cpp/bindings/bindings.h"

NB_MODULE(_core, module) {
    module.doc() = "Native core of NInfer. Internal: use it through ninfer.native.";
    ninfer::bindings::bind_errors(module);
    ninfer::bindings::bind_weights(module);
    ninfer::bindings::bind_sampling(module);
    ninfer::bindings::bind_program(module);
    ninfer::bindings::bind_testing(module);
    ninfer::bindings::bind_digest(module);
    ninfer::bindings::bind_wake_up(module);
}
