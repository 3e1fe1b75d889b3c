#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "cpp/bindings/bindings.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using FloatView = nb::ndarray<nb::numpy, float, nb::ndim<1>>;
using PageView = nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>>;

// A door into one sequence's live state. The caller keeps the sequence open while views are in use.
struct StateProbe {
    Program* program;
    SequenceHandle handle;

    const StateImageLayout& layout() const { return program->decoder().state_layout(); }
    void require_layer(std::int64_t layer) const {
        if (layer < 0 || layer >= layout().recurrent_layers) throw nb::index_error("no such recurrent layer");
    }
    FloatView floats(std::size_t offset_bytes, std::int64_t count) const {
        const auto image = program->state_image_for_test(handle);
        auto* data = reinterpret_cast<float*>(image.data() + offset_bytes);
        return FloatView(data, {static_cast<std::size_t>(count)}, nb::find(*this));
    }
};

}  // namespace

void bind_testing(nb::module_& module) {
    nb::class_<StateProbe>(
        module, "StateProbe",
        "Writable views of a sequence's live state, for tests that damage it on purpose and must see other "
        "logits. The engine never uses it.")
        .def(
            "__init__",
            [](StateProbe* self, Program& program, std::uint64_t sequence) {
                new (self) StateProbe{&program, {sequence}};
            },
            nb::arg("program"), nb::arg("sequence"), nb::keep_alive<1, 2>())
        .def_prop_ro("recurrent_layers", [](const StateProbe& probe) { return probe.layout().recurrent_layers; })
        .def(
            "recurrent_state",
            [](const StateProbe& probe, std::int64_t layer) {
                probe.require_layer(layer);
                return probe.floats(probe.layout().recurrent_offset(layer), probe.layout().layer.recurrent_floats());
            },
            nb::arg("layer"),
            "Recurrent state of the layer-th recurrent layer, f32, tiles as in recurrent_state_view.h.")
        .def(
            "conv_history",
            [](const StateProbe& probe, std::int64_t layer) {
                probe.require_layer(layer);
                return probe.floats(probe.layout().conv_offset(layer), probe.layout().layer.conv_floats());
            },
            nb::arg("layer"), "Convolution history of the layer-th recurrent layer, f32 [(width - 1) * channels].")
        .def("page_table", [](const StateProbe& probe) {
            const auto table = probe.program->page_table_for_test(probe.handle);
            return PageView(table.data(), {table.size()}, nb::find(probe));
        });
}

}  // namespace ninfer::bindings
