#include <nanobind/nanobind.h>

#include "cpp/bindings/bindings.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

void bind_statistics_values(nb::module_& module) {
    nb::class_<UsedVector>(module, "UsedVector", "What is used of each capacity; destinations of copies count.")
        .def_ro("device_pages", &UsedVector::device_pages)
        .def_ro("device_pages_reserved", &UsedVector::device_pages_reserved)
        .def_ro("image_slots_active", &UsedVector::image_slots_active)
        .def_ro("image_slots_checkpoint", &UsedVector::image_slots_checkpoint)
        .def_ro("host_blocks", &UsedVector::host_blocks);
    nb::class_<CapacityVector>(module, "CapacityVector", "The fixed sizes of a program's stores.")
        .def_ro("device_pages", &CapacityVector::device_pages)
        .def_ro("image_slots_active", &CapacityVector::image_slots_active)
        .def_ro("image_slots_checkpoint", &CapacityVector::image_slots_checkpoint)
        .def_ro("host_blocks", &CapacityVector::host_blocks);
    nb::class_<ProgramStatistics>(module, "ProgramStatistics", "What a program holds at one moment.")
        .def_ro("pages_total", &ProgramStatistics::pages_total)
        .def_ro("pages_free", &ProgramStatistics::pages_free)
        .def_ro("lanes_total", &ProgramStatistics::lanes_total)
        .def_ro("lanes_open", &ProgramStatistics::lanes_open)
        .def_ro("state_image_bytes", &ProgramStatistics::state_image_bytes)
        .def_ro("page_bytes", &ProgramStatistics::page_bytes)
        .def_ro("host_block_bytes", &ProgramStatistics::host_block_bytes)
        .def_ro("weight_bytes", &ProgramStatistics::weight_bytes)
        .def_ro("scratch_peak_bytes", &ProgramStatistics::scratch_peak_bytes)
        .def_ro("tokens_computed", &ProgramStatistics::tokens_computed)
        .def_ro("used", &ProgramStatistics::used)
        .def_ro("capacity", &ProgramStatistics::capacity)
        .def_ro("owners", &ProgramStatistics::owners)
        .def_ro("checkpoints", &ProgramStatistics::checkpoints)
        .def_ro("copies_open", &ProgramStatistics::copies_open)
        .def_ro("copies_draining", &ProgramStatistics::copies_draining)
        .def_ro("condemned", &ProgramStatistics::condemned,
                "What is gone and still pinned; a later poll gives it back.")
        .def_ro("bookkeeping_bytes", &ProgramStatistics::bookkeeping_bytes)
        .def_ro("resource_revision", &ProgramStatistics::resource_revision);
}

void bind_statistics(nb::class_<Program>& program) { program.def("statistics", &Program::statistics); }

}  // namespace ninfer::bindings
