#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <string_view>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/model_source.h"
#include "cpp/model/llama/llama_model.h"
#include "cpp/model/qwen35/qwen35_model.h"
#include "cpp/weights/weight_loader.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Floats = nb::ndarray<const float, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <typename Enum, std::size_t N>
Enum from_name(const std::array<Enum, N>& values, const std::string& name) {
    for (const auto value : values)
        if (to_string(value) == name) return value;
    throw nb::value_error(("unknown name: " + name).c_str());
}

void bind_configs(nb::module_& module) {
    nb::class_<LlamaConfig>(module, "LlamaConfig", "Sizes of a Llama-family decoder; every field must be set.")
        .def(nb::init<>())
        .def_rw("vocab_size", &LlamaConfig::vocab_size)
        .def_rw("hidden_size", &LlamaConfig::hidden_size)
        .def_rw("intermediate_size", &LlamaConfig::intermediate_size)
        .def_rw("layers", &LlamaConfig::layers)
        .def_rw("heads", &LlamaConfig::heads)
        .def_rw("kv_heads", &LlamaConfig::kv_heads)
        .def_rw("head_dim", &LlamaConfig::head_dim)
        .def_rw("rms_norm_epsilon", &LlamaConfig::rms_norm_epsilon)
        .def_rw("inverse_frequencies", &LlamaConfig::inverse_frequencies)
        .def_rw("tied_embeddings", &LlamaConfig::tied_embeddings);
    nb::class_<Qwen35Config>(module, "Qwen35Config", "Sizes of a Qwen3.5 text decoder; every field must be set.")
        .def(nb::init<>())
        .def_rw("vocab_size", &Qwen35Config::vocab_size)
        .def_rw("hidden_size", &Qwen35Config::hidden_size)
        .def_rw("intermediate_size", &Qwen35Config::intermediate_size)
        .def_rw("heads", &Qwen35Config::heads)
        .def_rw("kv_heads", &Qwen35Config::kv_heads)
        .def_rw("head_dim", &Qwen35Config::head_dim)
        .def_rw("rotary_dim", &Qwen35Config::rotary_dim)
        .def_rw("rms_norm_epsilon", &Qwen35Config::rms_norm_epsilon)
        .def_rw("inverse_frequencies", &Qwen35Config::inverse_frequencies)
        .def_rw("tied_embeddings", &Qwen35Config::tied_embeddings)
        .def_rw("layer_is_recurrent", &Qwen35Config::layer_is_recurrent)
        .def_rw("linear_key_heads", &Qwen35Config::linear_key_heads)
        .def_rw("linear_value_heads", &Qwen35Config::linear_value_heads)
        .def_rw("linear_key_head_dim", &Qwen35Config::linear_key_head_dim)
        .def_rw("linear_value_head_dim", &Qwen35Config::linear_value_head_dim)
        .def_rw("conv_width", &Qwen35Config::conv_width);
}

void bind_loader(nb::module_& module) {
    nb::class_<MatrixTarget>(module, "MatrixTarget", "Name, shape and storage (f32, bf16, q8, q4) of a matrix to pack.")
        .def(
            "__init__",
            [](MatrixTarget* self, const std::string& name, std::int64_t out_features, std::int64_t in_features,
               const std::string& storage) {
                if (out_features < 1 || in_features < 1)
                    throw nb::value_error("a matrix has at least one row and column");
                new (self) MatrixTarget{name, out_features, in_features, weight_storage(storage)};
            },
            nb::arg("name"), nb::arg("out_features"), nb::arg("in_features"), nb::arg("storage"));
    nb::class_<MappedFile>(module, "MappedFile", "A file mapped read-only.")
        .def(nb::init<std::string>(), nb::arg("path"))
        .def_prop_ro("size", &MappedFile::size);
    nb::class_<WeightLoader>(module, "WeightLoader", "Packs a model's weights with `threads` threads.")
        .def(
            "__init__",
            [](WeightLoader* self, int threads) {
                if (threads < 1) throw nb::value_error("threads must be at least 1");
                new (self) WeightLoader(threads);
            },
            nb::arg("threads"))
        .def_prop_ro("packed_bytes", [](const WeightLoader& loader) { return loader.store()->total_bytes(); })
        .def(
            "add_matrix_from_file",
            [](WeightLoader& loader, const MatrixTarget& target, const MappedFile& file, std::size_t offset,
               std::size_t count, const std::string& encoding) {
                const auto file_encoding_value = file_encoding(encoding);
                const nb::gil_scoped_release release;
                loader.add_matrix(target, file, offset, count, file_encoding_value);
            },
            nb::arg("target"), nb::arg("file"), nb::arg("offset"), nb::arg("count"), nb::arg("encoding"),
            "Packs `count` bytes of the file; raises ModelFileError if they are missing or cannot be stored.")
        .def(
            "add_matrix_from_bytes",
            [](WeightLoader& loader, const MatrixTarget& target, const Bytes& bytes, const std::string& encoding,
               const std::string& origin) {
                const auto file_encoding_value = file_encoding(encoding);
                const std::span view(reinterpret_cast<const std::byte*>(bytes.data()), bytes.size());
                const nb::gil_scoped_release release;
                loader.add_matrix(target, view, file_encoding_value, origin);
            },
            nb::arg("target"), nb::arg("bytes"), nb::arg("encoding"), nb::arg("origin"),
            "Packs encoded bytes in memory; `origin` names their file in errors.")
        .def(
            "add_vector",
            [](WeightLoader& loader, const std::string& name, const Floats& values) {
                loader.add_vector(name, {values.data(), values.size()});
            },
            nb::arg("name"), nb::arg("values"));
}

}  // namespace

InstructionSet instruction_set(const std::string& name) {
    const auto isa = instruction_set_from_string(name);
    if (!isa || !cpu_supports(*isa)) throw nb::value_error(("unsupported instruction set: " + name).c_str());
    return *isa;
}

KvStorage kv_storage(const std::string& name) {
    return from_name(std::array{KvStorage::kF32, KvStorage::kBf16, KvStorage::kInt8}, name);
}

WeightStorage weight_storage(const std::string& name) {
    return from_name(std::array{WeightStorage::kF32, WeightStorage::kBf16, WeightStorage::kQ8, WeightStorage::kQ4},
                     name);
}

FileEncoding file_encoding(const std::string& name) {
    return from_name(std::array{FileEncoding::kF32, FileEncoding::kF16, FileEncoding::kBf16, FileEncoding::kQ8_0,
                                FileEncoding::kQ4_0, FileEncoding::kQ4_1},
                     name);
}

void bind_weights(nb::module_& module) {
    module.def(
        "supported_cpu_isas",
        [] {
            std::vector<std::string> names;
            for (const auto isa : {InstructionSet::kScalar, InstructionSet::kAvx2, InstructionSet::kAvx512})
                if (cpu_supports(isa)) names.emplace_back(to_string(isa));
            return names;
        },
        "Instruction sets of the CPU ops that this machine can run, narrowest first.");
    bind_configs(module);
    bind_loader(module);
    nb::class_<ModelSource>(module, "ModelSource", "A decoder over loaded weights.");
    module.def(
        "llama_model",
        [](const LlamaConfig& config, const WeightLoader& loader) {
            return ModelSource{loader.store(), llama_decoder(config, *loader.store())};
        },
        nb::arg("config"), nb::arg("loader"));
    module.def(
        "qwen35_model",
        [](const Qwen35Config& config, const WeightLoader& loader) {
            return ModelSource{loader.store(), qwen35_decoder(config, *loader.store())};
        },
        nb::arg("config"), nb::arg("loader"));
}

}  // namespace ninfer::bindings
