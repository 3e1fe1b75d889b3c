"""A Hugging Face model directory: config.json, generation_config.json, safetensors shards."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import cast

from ninfer.config.hf_config import config_from_hf
from ninfer.config.json_file import read_json_object, read_optional_json_object
from ninfer.config.model_config import ModelConfig
from ninfer.errors import ModelFileError
from ninfer.weights.expected_tensors import check_tensors, expected_tensors
from ninfer.weights.generation_defaults import directory_generation_defaults
from ninfer.weights.model_files import ModelFiles
from ninfer.weights.safetensors_file import StoredTensor, read_safetensors_header
from ninfer.weights.tensor_source import Encoding, FileTensor, read_encoded

SINGLE_FILE = "model.safetensors"
INDEX_FILE = "model.safetensors.index.json"
STORED_ENCODINGS = ("F32", "F16", "BF16")

# Longest first: each is tried in this order and at most one is removed.
PREFIXES = ("model.language_model.", "language_model.model.", "language_model.", "model.")

# Parts that the text model does not have: vision tower, multi-token-prediction heads, recomputed rotary tables.
IGNORED = re.compile(r"^(model\.)?(visual|vision_tower|multi_modal_projector|mtp)\.|\.rotary_emb\.inv_freq$")

Stored = dict[str, tuple[Path, StoredTensor]]


def open_hf_directory(directory: Path) -> ModelFiles:
    """Opens `directory`; ModelFileError for everything that is damaged, missing or unsupported."""
    config_file = directory / "config.json"
    config = config_from_hf(read_json_object(config_file), config_file)
    _refuse_remote_code(directory / "tokenizer_config.json")
    index, stored = _stored_tensors(directory)
    tensors = _canonical_tensors(stored, index)
    config, tensors = _resolve_tied_head(config, tensors)
    shapes = {name: tensor.shape for name, tensor in tensors.items()}
    check_tensors(config, shapes, _stored_names(config, stored), index)
    generation = directory_generation_defaults(directory, config.vocab_size)
    return ModelFiles(directory, "hf", config, dict(tensors), generation)


def _refuse_remote_code(tokenizer_config: Path) -> None:
    auto_map = read_optional_json_object(tokenizer_config).get("auto_map")
    if auto_map is not None:
        expected = "absent: code that comes with a model is never run"
        raise ModelFileError(tokenizer_config, "auto_map", expected, repr(auto_map))


def _stored_tensors(directory: Path) -> tuple[Path, Stored]:
    """The file that lists the tensors, and every tensor with the file it lies in."""
    index = directory / INDEX_FILE
    if index.exists():
        return index, _sharded_tensors(index)
    single = directory / SINGLE_FILE
    if single.exists():
        return single, {tensor.name: (single, tensor) for tensor in read_safetensors_header(single)}
    pickles = sorted(file.name for pattern in ("*.bin", "*.pt", "*.pth") for file in directory.glob(pattern))
    found = f"{', '.join(pickles[:3])}: pickles can run code and are refused" if pickles else "neither"
    raise ModelFileError(directory, "weights", f"{SINGLE_FILE} or {INDEX_FILE}", found)


def _sharded_tensors(index: Path) -> Stored:
    weight_map = read_json_object(index).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise ModelFileError(index, "weight_map", "tensor names with their files", repr(weight_map)[:100])
    for name, shard in weight_map.items():
        if not isinstance(shard, str) or Path(shard).name != shard or not shard.endswith(".safetensors"):
            raise ModelFileError(index, f"weight_map.{name}", "a .safetensors file of the same directory", repr(shard))
    stored: Stored = {}
    for shard in sorted(set(weight_map.values())):
        file = index.parent / shard
        if not file.exists():
            raise ModelFileError(index, "weight_map", f"the shard {shard}", "no such file")
        for tensor in read_safetensors_header(file):
            if tensor.name in stored:
                found = f"once more in {stored[tensor.name][0].name}"
                raise ModelFileError(file, tensor.name, "every tensor in one shard", found)
            if weight_map.get(tensor.name) != shard:
                raise ModelFileError(index, f"weight_map.{tensor.name}", shard, weight_map.get(tensor.name, "nothing"))
            stored[tensor.name] = (file, tensor)
    for name, shard in weight_map.items():
        if name not in stored:
            raise ModelFileError(index.parent / shard, name, "the tensor that the index promises", "nothing")
    return stored


def _canonical_tensors(stored: Stored, index: Path) -> dict[str, FileTensor]:
    tensors: dict[str, FileTensor] = {}
    for stored_name, (file, tensor) in stored.items():
        if IGNORED.search(stored_name):
            continue
        if tensor.dtype not in STORED_ENCODINGS:
            raise ModelFileError(file, f"{stored_name}.dtype", " or ".join(STORED_ENCODINGS), tensor.dtype)
        name = _canonical_name(stored_name)
        if name in tensors:
            raise ModelFileError(index, stored_name, f"one tensor for {name}", "two")
        encoding = cast(Encoding, tensor.dtype)
        tensors[name] = FileTensor(name, tensor.shape, encoding, file, tensor.offset, tensor.nbytes)
    return tensors


def _stored_names(config: ModelConfig, stored: Stored) -> dict[str, str]:
    """Canonical name → name in the files; missing tensors get the prefix that the embedding has."""
    found = {_canonical_name(name): name for name in stored if not IGNORED.search(name)}
    embedding = "embed_tokens.weight"
    prefix = found.get(embedding, embedding).removesuffix(embedding)
    missing = expected_tensors(config).keys() - found.keys() - {"lm_head.weight"}
    return found | {name: prefix + name for name in missing}


def _canonical_name(stored_name: str) -> str:
    for prefix in PREFIXES:
        if stored_name.startswith(prefix):
            return stored_name.removeprefix(prefix)
    return stored_name


def _resolve_tied_head(
    config: ModelConfig, tensors: dict[str, FileTensor]
) -> tuple[ModelConfig, dict[str, FileTensor]]:
    """Some files of tied models hold the head once more: a copy is dropped, another matrix is used as it stands.

    transformers decides the same way: what both tensors hold wins over the switch in the configuration.
    """
    head, embedding = tensors.get("lm_head.weight"), tensors.get("embed_tokens.weight")
    if not config.tied_embeddings or head is None:
        return config, tensors
    if embedding is not None and _same_bytes(head, embedding):
        return config, {name: tensor for name, tensor in tensors.items() if tensor is not head}
    return replace(config, tied_embeddings=False), tensors


def _same_bytes(one: FileTensor, other: FileTensor) -> bool:
    if (one.encoding, one.shape) != (other.encoding, other.shape):
        return False
    left, right, step = read_encoded(one), read_encoded(other), 1 << 24
    return all(bool((left[i : i + step] == right[i : i + step]).all()) for i in range(0, left.size, step))
