#pragma once

#include <memory>
#include <string>

#include "cpp/base/cpu_features.h"
#include "cpp/model/decoder_spec.h"
#include "cpp/tensor/dtype.h"
#include "cpp/weights/weight_store.h"

namespace ninfer::bindings {

// A decoder with the store that keeps its weights alive.
struct ModelSource {
    std::shared_ptr<WeightStore> store;
    DecoderSpec spec;
};

// Names from Python; an unknown one raises ValueError: the configuration was checked before it came here.
InstructionSet instruction_set(const std::string& name);
KvStorage kv_storage(const std::string& name);
WeightStorage weight_storage(const std::string& name);
FileEncoding file_encoding(const std::string& name);

}  // namespace ninfer::bindings
