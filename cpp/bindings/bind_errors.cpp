#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <system_error>

#include "cpp/base/error.h"
#include "cpp/bindings/bindings.h"
#include "cpp/state/refusal.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

// A failing world becomes the typed exceptions of ninfer.errors, and OSError.
void translate(const std::exception_ptr& pointer, void*) {
    try {
        std::rethrow_exception(pointer);
    } catch (const FileError& error) {
        const nb::object type = nb::module_::import_("ninfer.errors").attr("ModelFileError");
        const nb::object value = type(error.file(), error.key(), error.expected(), error.found());
        PyErr_SetObject(type.ptr(), value.ptr());
    } catch (const OutOfMemoryError& error) {
        const nb::object type = nb::module_::import_("ninfer.errors").attr("CapacityError");
        PyErr_SetString(type.ptr(), error.what());
    } catch (const std::system_error& error) {
        const nb::object value = nb::make_tuple(error.code().value(), error.what());
        PyErr_SetObject(PyExc_OSError, value.ptr());
    }
}

}  // namespace

void bind_errors(nb::module_& module) {
    nb::register_exception_translator(translate);
    nb::class_<Refusal>(
        module, "Refusal",
        "An expected no of the core: nothing has changed. `wanted` and `found` are the values that decided.")
        .def_prop_ro("kind", [](const Refusal& refusal) { return std::string(to_string(refusal.kind)); })
        .def_ro("wanted", &Refusal::wanted)
        .def_ro("found", &Refusal::found)
        .def("__str__", &Refusal::message)
        .def("__repr__", [](const Refusal& refusal) { return "Refusal(" + refusal.message() + ")"; });
}

}  // namespace ninfer::bindings
