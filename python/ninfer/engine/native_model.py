"""From checked model files to a native decoder: which storage each tensor gets, and packing one tensor at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ninfer import native
from ninfer.config.engine_options import WeightsOption
from ninfer.config.model_config import DecoderConfig, LlamaConfig, ModelConfig, Qwen35Config
from ninfer.config.rope_config import inverse_frequencies
from ninfer.weights.dequantise import as_float32
from ninfer.weights.model_files import ModelFiles
from ninfer.weights.tensor_source import ArrayTensor, Encoding, FileTensor, TensorSource, read_encoded

Progress = Callable[[int, int], None]
"""Called with (bytes of file data packed so far, bytes of all tensors)."""

_AS_STORED: dict[Encoding, str] = {
    "F32": "f32",
    "F16": "f32",
    "BF16": "bf16",
    "Q8_0": "q8",
    "Q4_0": "q4",
    "Q4_1": "q4",
}
# The gates of Gated DeltaNet decide how long its state lives: a rounding here compounds over thousands of tokens, and
# they are a thousandth of the weights.
_GATES = ("in_proj_a.weight", "in_proj_b.weight")
# Every token passes through these two, and four bits cost them more quality than all other matrices together.
_VOCABULARY = ("embed_tokens.weight", "lm_head.weight")


def weight_storage(tensor: TensorSource, option: WeightsOption) -> str:
    """The storage of one matrix: as stored for `auto`; quantising spares the DeltaNet gates, q4 the vocabulary.

    A quantised type of the file that no storage of ours holds (Q6_K and the like) becomes q8 under `auto`: f32 would be
    exact, and take four to eight times the file's memory.
    """
    requantised = isinstance(tensor, ArrayTensor) and tensor.dequantised_from is not None
    as_stored = "q8" if requantised else _AS_STORED[tensor.encoding]
    if option == "auto":
        return as_stored
    if option in ("q8", "q4") and tensor.name.endswith(_GATES) and as_stored in ("f32", "bf16"):
        return as_stored
    if option == "q4" and tensor.name in _VOCABULARY:
        return "q8"
    return option


def load_native_model(
    files: ModelFiles, option: WeightsOption, threads: int, progress: Progress | None = None
) -> native.ModelSource:
    """Packs every tensor and builds the decoder.

    Raises ModelFileError naming the tensor if its bytes are missing or hold values that the storage cannot.
    """
    loader = native.WeightLoader(threads)
    packer = _Packer(loader, files.path, option)
    total = sum(tensor.nbytes for tensor in files.tensors.values())
    done = 0
    for tensor in files.tensors.values():
        packer.add(tensor)
        done += tensor.nbytes
        if progress is not None:
            progress(done, total)
    return _decoder(files.config, loader)


class _Packer:
    def __init__(self, loader: native.WeightLoader, origin: Path, option: WeightsOption) -> None:
        self._loader = loader
        self._origin = origin
        self._option = option
        self._mapped: dict[Path, native.MappedFile] = {}

    def add(self, tensor: TensorSource) -> None:
        if len(tensor.shape) == 2:
            self._add_matrix(tensor)
        else:
            self._loader.add_vector(tensor.name, as_float32(tensor).reshape(-1))

    def _add_matrix(self, tensor: TensorSource) -> None:
        rows, columns = tensor.shape
        target = native.MatrixTarget(tensor.name, rows, columns, weight_storage(tensor, self._option))
        if isinstance(tensor, FileTensor):
            if tensor.file not in self._mapped:
                self._mapped[tensor.file] = native.MappedFile(str(tensor.file))
            file = self._mapped[tensor.file]
            self._loader.add_matrix_from_file(target, file, tensor.offset, tensor.nbytes, tensor.encoding)
        else:
            self._loader.add_matrix_from_bytes(target, read_encoded(tensor), tensor.encoding, str(self._origin))


def _decoder(config: ModelConfig, loader: native.WeightLoader) -> native.ModelSource:
    if isinstance(config, LlamaConfig):
        return native.llama_model(_llama_config(config), loader)
    return native.qwen35_model(_qwen35_config(config), loader)


def _fill_shared(target: native.LlamaConfig | native.Qwen35Config, config: DecoderConfig) -> None:
    target.vocab_size = config.vocab_size
    target.hidden_size = config.hidden_size
    target.intermediate_size = config.intermediate_size
    target.heads = config.heads
    target.kv_heads = config.kv_heads
    target.head_dim = config.head_dim
    target.rms_norm_epsilon = config.rms_norm_eps
    target.inverse_frequencies = list(inverse_frequencies(config.rope))
    target.tied_embeddings = config.tied_embeddings


def _llama_config(config: LlamaConfig) -> native.LlamaConfig:
    target = native.LlamaConfig()
    _fill_shared(target, config)
    target.layers = config.layers
    return target


def _qwen35_config(config: Qwen35Config) -> native.Qwen35Config:
    target = native.Qwen35Config()
    _fill_shared(target, config)
    target.rotary_dim = config.rope.rotary_dim
    target.layer_is_recurrent = [layer_type == "linear_attention" for layer_type in config.layer_types]
    target.linear_key_heads = config.linear_key_heads
    target.linear_value_heads = config.linear_value_heads
    target.linear_key_head_dim = config.linear_key_head_dim
    target.linear_value_head_dim = config.linear_value_head_dim
    target.conv_width = config.conv_width
    return target
