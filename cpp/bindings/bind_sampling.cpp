#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include "cpp/bindings/bindings.h"
#include "cpp/bindings/sampler.h"

namespace nb = nanobind;

namespace ninfer::bindings {

namespace {

using MaskWords = nb::ndarray<const std::uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <auto Member>
void define_field(nb::class_<Sampler>& type, const char* name) {
    using Value = std::remove_cvref_t<decltype(std::declval<SamplerInput>().*Member)>;
    type.def_prop_rw(
        name, [](const Sampler& sampler) { return sampler.input.*Member; },
        [](Sampler& sampler, Value value) { sampler.input.*Member = value; });
}

std::vector<std::pair<std::int32_t, float>> top_logprobs(const SampledToken& token) {
    std::vector<std::pair<std::int32_t, float>> result;
    for (std::int32_t i = 0; i < token.top_count; ++i) result.emplace_back(token.top_ids[i], token.top_logprobs[i]);
    return result;
}

}  // namespace

void bind_sampling(nb::module_& module) {
    nb::class_<Sampler> sampler(
        module, "Sampler",
        "How one request's next token is picked; fields as in cpp/ops/sampling.h. temperature 0 is "
        "greedy.");
    sampler.def(nb::init<>());
    define_field<&SamplerInput::temperature>(sampler, "temperature");
    define_field<&SamplerInput::top_p>(sampler, "top_p");
    define_field<&SamplerInput::min_p>(sampler, "min_p");
    define_field<&SamplerInput::top_k>(sampler, "top_k");
    define_field<&SamplerInput::presence_penalty>(sampler, "presence_penalty");
    define_field<&SamplerInput::frequency_penalty>(sampler, "frequency_penalty");
    define_field<&SamplerInput::repetition_penalty>(sampler, "repetition_penalty");
    define_field<&SamplerInput::seed>(sampler, "seed");
    define_field<&SamplerInput::logprobs>(sampler, "logprobs");
    sampler.def(
        "set_mask",
        [](Sampler& self, const MaskWords& words) { self.mask.assign(words.data(), words.data() + words.size()); },
        nb::arg("words"),
        "Allowed tokens as uint32 words, bit id % 32 of word id // 32, one word per 32 ids of the vocabulary; an empty "
        "array allows all.");
    sampler.def(
        "set_bias",
        [](Sampler& self, const std::vector<std::pair<std::int32_t, float>>& bias) {
            self.bias.clear();
            for (const auto& [id, value] : bias) self.bias.push_back({id, value});
        },
        nb::arg("bias"), "Pairs of token id and value added to its logit.");

    nb::class_<SampledToken>(module, "SampledToken",
                             "The picked token, -1 if the mask allows none; log-probabilities are the model's own.")
        .def_ro("id", &SampledToken::id)
        .def_ro("logprob", &SampledToken::logprob)
        .def_prop_ro("top_logprobs", &top_logprobs);
}

}  // namespace ninfer::bindings
