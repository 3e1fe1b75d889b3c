#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "cpp/bindings/bindings.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

// Views into a sequence's live state, so that tests can damage it on purpose and must see other logits.
void bind_testing(nb::module_& module) {
    nb::module_ testing = module.def_submodule("testing", "Doors into live state for tests; never used by the engine.");
    testing.def(
        "state_image",
        [](Program& program, std::uint64_t handle) {
            const auto image = program.state_image_for_test({handle});
            return nb::ndarray<nb::numpy, float, nb::ndim<1>>(image.data(), {image.size() / sizeof(float)},
                                                              nb::find(program));
        },
        nb::arg("program"), nb::arg("sequence"), "The live state image as f32 [image bytes / 4], writable.");
    testing.def(
        "page_table",
        [](Program& program, std::uint64_t handle) {
            const auto table = program.page_table_for_test({handle});
            return nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>>(table.data(), {table.size()}, nb::find(program));
        },
        nb::arg("program"), nb::arg("sequence"), "The live page table as int32 [pages], writable.");
    testing.def(
        "state_layout",
        [](const Program& program) {
            const auto& layout = program.decoder().state_layout();
            nb::dict result;
            result["layers"] = layout.recurrent_layers;
            result["layer_floats"] = layout.layer_bytes() / sizeof(float);
            result["recurrent_floats"] = layout.layer.recurrent_floats();
            result["conv_offset_floats"] =
                StateImageLayout::aligned_bytes(layout.layer.recurrent_floats()) / sizeof(float);
            result["conv_floats"] = layout.layer.conv_floats();
            return result;
        },
        nb::arg("program"), "Where each recurrent layer's state lies in an image, in floats.");
}

}  // namespace ninfer::bindings
