#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <variant>

#include "cpp/bindings/bindings.h"
#include "cpp/program/program.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using FloatView = nb::ndarray<nb::numpy, float, nb::ndim<1>>;
using PageView = nb::ndarray<nb::numpy, std::int32_t, nb::ndim<1>>;
using ByteView = nb::ndarray<nb::numpy, std::uint8_t, nb::ndim<1>>;

// A door into one sequence's live state. The caller keeps the sequence open while views are in use.
struct StateProbe {
    Program* program;
    SequenceHandle handle;

    std::span<std::byte> image() const { return program->state_image_for_test(handle); }
};

// The same for what a checkpoint has on Device.
struct CheckpointProbe {
    Program* program;
    CheckpointHandle handle;

    std::span<std::byte> image() const {
        const auto image = program->state_image_for_test(handle);
        if (image.empty()) throw nb::value_error("the checkpoint has no state image on Device");
        return image;
    }
};

template <typename Probe>
const StateImageLayout& layout(const Probe& probe) {
    return probe.program->decoder().state_layout();
}

template <typename Probe>
FloatView floats(const Probe& probe, std::size_t offset_bytes, std::int64_t count) {
    auto* data = reinterpret_cast<float*>(probe.image().data() + offset_bytes);
    return FloatView(data, {static_cast<std::size_t>(count)}, nb::find(probe));
}

template <typename Probe>
void require_layer(const Probe& probe, std::int64_t layer) {
    if (layer < 0 || layer >= layout(probe).recurrent_layers) throw nb::index_error("no such recurrent layer");
}

template <typename Probe>
void bind_image(nb::class_<Probe>& probe) {
    probe.def_prop_ro("recurrent_layers", [](const Probe& self) { return layout(self).recurrent_layers; });
    probe.def(
        "recurrent_state",
        [](const Probe& self, std::int64_t layer) {
            require_layer(self, layer);
            return floats(self, layout(self).recurrent_offset(layer), layout(self).layer.recurrent_floats());
        },
        nb::arg("layer"), "Recurrent state of the layer-th recurrent layer, f32, tiles as in recurrent_state_view.h.");
    probe.def(
        "conv_history",
        [](const Probe& self, std::int64_t layer) {
            require_layer(self, layer);
            return floats(self, layout(self).conv_offset(layer), layout(self).layer.conv_floats());
        },
        nb::arg("layer"), "Convolution history of the layer-th recurrent layer, f32 [(width - 1) * channels].");
}

void bind_state_probe(nb::module_& module) {
    nb::class_<StateProbe> probe(
        module, "StateProbe",
        "Writable views of a sequence's live state, for tests that damage it on purpose and must see other "
        "logits. The engine never uses it.");
    probe.def(
        "__init__",
        [](StateProbe* self, Program& program, std::uint64_t sequence) {
            if (!program.find(SequenceHandle{sequence})) throw nb::value_error("no such sequence");
            new (self) StateProbe{&program, {sequence}};
        },
        nb::arg("program"), nb::arg("sequence"), nb::keep_alive<1, 2>());
    bind_image(probe);
    probe.def(
        "page_table",
        [](const StateProbe& self) {
            const auto table = self.program->page_table_for_test(self.handle);
            return PageView(table.data(), {table.size()}, nb::find(self));
        },
        "Device page of each mapped page, int32 [pages].");
}

void bind_checkpoint_probe(nb::module_& module) {
    nb::class_<CheckpointProbe> probe(
        module, "CheckpointProbe",
        "Writable views of what a checkpoint has on Device, for tests that damage it on purpose. The engine never uses "
        "it.");
    probe.def(
        "__init__",
        [](CheckpointProbe* self, Program& program, std::uint64_t checkpoint) {
            if (!program.checkpoint(CheckpointHandle{checkpoint})) throw nb::value_error("no such checkpoint");
            new (self) CheckpointProbe{&program, {checkpoint}};
        },
        nb::arg("program"), nb::arg("checkpoint"), nb::keep_alive<1, 2>());
    bind_image(probe);
    probe.def(
        "device_pages", [](const CheckpointProbe& self) { return self.program->device_pages_for_test(self.handle); },
        "Device page of each page, -1 for one that is on Host only.");
    probe.def(
        "page",
        [](const CheckpointProbe& self, std::size_t index) {
            const auto pages = self.program->device_pages_for_test(self.handle);
            if (index >= pages.size()) throw nb::index_error("no such page");
            if (pages[index] < 0) throw nb::value_error("the page is not on Device");
            const auto bytes = self.program->device_page_for_test(pages[index]);
            return ByteView(reinterpret_cast<std::uint8_t*>(bytes.data()), {bytes.size()}, nb::find(self));
        },
        nb::arg("index"), "The bytes of one page on Device, all layers, uint8 [page_bytes].");
}

}  // namespace

void bind_testing(nb::module_& module) {
    bind_state_probe(module);
    bind_checkpoint_probe(module);
}

}  // namespace ninfer::bindings
