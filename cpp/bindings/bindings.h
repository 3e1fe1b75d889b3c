#pragma once

#include <nanobind/nanobind.h>

namespace ninfer::bindings {

void bind_errors(nanobind::module_& module);
void bind_weights(nanobind::module_& module);
void bind_sampling(nanobind::module_& module);
void bind_program(nanobind::module_& module);
void bind_testing(nanobind::module_& module);
void bind_digest(nanobind::module_& module);

}  // namespace ninfer::bindings
