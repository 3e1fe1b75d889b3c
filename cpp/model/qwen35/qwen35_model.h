#pragma once

#include "cpp/model/decoder_spec.h"
#include "cpp/model/qwen35/qwen35_config.h"
#include "cpp/weights/weight_store.h"

namespace ninfer {

// The decoder of a Qwen3.5 text model over the weights in `store`, which must outlive it and receives the derived
// vectors: zero-centred norms as 1 + weight, exp(A_log), convolution taps transposed to [width][channels].
DecoderSpec qwen35_decoder(const Qwen35Config& config, WeightStore& store);

}  // namespace ninfer
