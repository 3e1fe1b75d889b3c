#pragma once

#include "cpp/model/decoder_spec.h"
#include "cpp/model/llama/llama_config.h"
#include "cpp/weights/weight_store.h"

namespace ninfer {

// The decoder of a Llama-family model over the weights in `store`, which must outlive it. Every tensor must be present
// with its shape: the loader has checked the files.
DecoderSpec llama_decoder(const LlamaConfig& config, const WeightStore& store);

}  // namespace ninfer
