"""Hugging Face directories: every tensor where it lies, and a refusal for everything else."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from ninfer.config.model_config import Qwen35Config
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import ModelFileError, ModelNotFoundError
from ninfer.weights.dequantise import as_float32
from ninfer.weights.expected_tensors import check_vocabulary, expected_tensors
from ninfer.weights.model_files import GenerationDefaults, ModelFiles
from ninfer.weights.open_model import open_model
from ninfer.weights.tensor_source import FileTensor
from tests.fixtures.seed import SEED
from tests.fixtures.tiny_models import TinyFiles, TinyHybrid, write_tiny_model

Change = Callable[[Path], object]


@pytest.fixture
def sharded(tiny_sharded_llama: Path, tmp_path: Path) -> Path:
    """A sharded copy to damage."""
    return Path(shutil.copytree(tiny_sharded_llama, tmp_path / "sharded"))


def assert_holds(model: ModelFiles, arrays: dict[str, np.ndarray]) -> None:
    """Every tensor of `model` has the bytes of the array of its name, prefixes aside."""
    by_name = {re.sub(r"^(model\.(language_model\.)?)", "", name): array for name, array in arrays.items()}
    assert model.tensors.keys() == expected_tensors(model.config).keys()
    for name, tensor in model.tensors.items():
        assert isinstance(tensor, FileTensor)
        assert tensor.shape == by_name[name].shape
        np.testing.assert_array_equal(as_float32(tensor), by_name[name], strict=True, err_msg=name)


def test_one_file_with_conv_and_tied_embeddings(tiny_hybrid: Path) -> None:
    model = open_model(tiny_hybrid)
    assert isinstance(model.config, Qwen35Config)
    assert model.config.tied_embeddings
    assert_holds(model, load_file(tiny_hybrid / "model.safetensors"))
    assert (model.kind, model.path, model.gguf_metadata) == ("hf", tiny_hybrid, None)


def test_shards_with_an_index(tiny_sharded_llama: Path) -> None:
    shards = sorted(tiny_sharded_llama.glob("*.safetensors"))
    assert len(shards) > 2
    arrays = {name: array for shard in shards for name, array in load_file(shard).items()}
    model = open_model(tiny_sharded_llama)
    assert not model.config.tied_embeddings
    assert_holds(model, arrays)


def test_the_text_part_of_a_vision_model(tmp_path: Path) -> None:
    path = write_tiny_model(tmp_path / "model", TinyHybrid(), SEED, TinyFiles(wrapped=True))
    assert_holds(open_model(path), load_file(path / "model.safetensors"))


def test_the_demo_model_is_bf16_with_its_defaults() -> None:
    model = open_model(HYBRID_DIRECTORY)
    assert {tensor.encoding for tensor in model.tensors.values()} == {"BF16"}
    assert model.generation == GenerationDefaults(eos_ids=(2,), pad_id=0, do_sample=False)


def edit_json(file: Path, change: Callable[[dict[str, Any]], object]) -> None:
    values = json.loads(file.read_text())
    change(values)
    file.write_text(json.dumps(values))


def edit_tensors(file: Path, change: Callable[[dict[str, np.ndarray]], object]) -> None:
    arrays = load_file(file)
    change(arrays)
    save_file(arrays, file)


def test_a_copy_of_the_tied_head_is_dropped(hybrid: Path) -> None:
    edit_tensors(
        hybrid / "model.safetensors",
        lambda tensors: tensors.update({"lm_head.weight": tensors["model.embed_tokens.weight"]}),
    )
    model = open_model(hybrid)
    assert model.config.tied_embeddings
    assert "lm_head.weight" not in model.tensors


def test_another_head_than_the_embeddings_is_used_though_the_config_says_tied(hybrid: Path) -> None:
    edit_tensors(
        hybrid / "model.safetensors",
        lambda tensors: tensors.update({"lm_head.weight": tensors["model.embed_tokens.weight"] + 1}),
    )
    model = open_model(hybrid)
    assert not model.config.tied_embeddings
    head, embedding = (as_float32(model.tensors[name]) for name in ("lm_head.weight", "embed_tokens.weight"))
    np.testing.assert_array_equal(head, embedding + 1)


def test_rotary_tables_in_old_files_are_passed_over(hybrid: Path) -> None:
    table = {"model.layers.0.self_attn.rotary_emb.inv_freq": np.ones(4, np.float32)}
    edit_tensors(hybrid / "model.safetensors", lambda tensors: tensors.update(table))
    assert "layers.0.self_attn.rotary_emb.inv_freq" not in open_model(hybrid).tensors


NORM = "model.layers.0.input_layernorm.weight"
SINGLE_DAMAGES: dict[str, tuple[Change, str, str]] = {
    "tensor missing": (
        lambda path: edit_tensors(path / "model.safetensors", lambda tensors: tensors.pop(NORM)),
        "model.safetensors",
        NORM,
    ),
    "shape wrong": (
        lambda path: edit_tensors(
            path / "model.safetensors", lambda tensors: tensors.update({NORM: np.ones(63, np.float32)})
        ),
        "model.safetensors",
        NORM,
    ),
    "tensor unknown": (
        lambda path: edit_tensors(
            path / "model.safetensors", lambda tensors: tensors.update({"model.new": np.ones(1)})
        ),
        "model.safetensors",
        "model.new.dtype",
    ),
    "bias unknown": (
        lambda path: edit_tensors(
            path / "model.safetensors", lambda tensors: tensors.update({NORM[:-6] + "bias": np.ones(64, np.float32)})
        ),
        "model.safetensors",
        NORM[:-6] + "bias",
    ),
    "integer weights": (
        lambda path: edit_tensors(
            path / "model.safetensors", lambda tensors: tensors.update({NORM: np.ones(64, np.int8)})
        ),
        "model.safetensors",
        NORM + ".dtype",
    ),
    "two names for one tensor": (
        lambda path: edit_tensors(
            path / "model.safetensors", lambda tensors: tensors.update({NORM.removeprefix("model."): tensors[NORM]})
        ),
        "model.safetensors",
        NORM,
    ),
    "more layers than tensors": (
        lambda path: edit_json(
            path / "config.json", lambda tensors: tensors.update(num_hidden_layers=6, layer_types=None)
        ),
        "model.safetensors",
        "",
    ),
    "config missing": (lambda path: (path / "config.json").unlink(), "config.json", "file"),
    "config not JSON": (lambda path: (path / "config.json").write_text("{"), "config.json", "content"),
    "config not an object": (lambda path: (path / "config.json").write_text("[]"), "config.json", "content"),
    "architecture unknown": (
        lambda path: edit_json(path / "config.json", lambda tensors: tensors.update(architectures=["GPT2LMHeadModel"])),
        "config.json",
        "architectures",
    ),
    "remote code in the tokenizer": (
        lambda path: edit_json(
            path / "tokenizer_config.json", lambda tensors: tensors.update(auto_map={"AutoTokenizer": "x"})
        ),
        "tokenizer_config.json",
        "auto_map",
    ),
    "weights missing": (lambda path: (path / "model.safetensors").unlink(), "", "weights"),
    "only a pickle": (
        lambda path: (path / "model.safetensors").rename(path / "pytorch_model.bin"),
        "",
        "weights",
    ),
    "weights truncated": (
        lambda path: (path / "model.safetensors").write_bytes((path / "model.safetensors").read_bytes()[:-1]),
        "model.safetensors",
        "data_offsets",
    ),
    "end token not a number": (
        lambda path: (path / "generation_config.json").write_text('{"eos_token_id": "</s>"}'),
        "generation_config.json",
        "eos_token_id",
    ),
    "end token in a list not a number": (
        lambda path: (path / "generation_config.json").write_text('{"eos_token_id": [1, null]}'),
        "generation_config.json",
        "eos_token_id",
    ),
    "temperature not a number": (
        lambda path: (path / "generation_config.json").write_text('{"temperature": NaN}'),
        "generation_config.json",
        "temperature",
    ),
}


@pytest.mark.parametrize("damage", SINGLE_DAMAGES)
def test_damage_of_a_directory_is_refused_with_file_and_key(hybrid: Path, damage: str) -> None:
    change, file, key = SINGLE_DAMAGES[damage]
    change(hybrid)
    with pytest.raises(ModelFileError) as caught:
        open_model(hybrid)
    assert caught.value.file == str(hybrid / file if file else hybrid)
    assert key in caught.value.key


def first_shard(path: Path) -> Path:
    return min(path.glob("*.safetensors"))


def index_of(path: Path) -> Path:
    return path / "model.safetensors.index.json"


def forget_in_index(path: Path) -> None:
    edit_json(index_of(path), lambda tensors: tensors["weight_map"].popitem())


def promise_in_index(path: Path, shard: str) -> None:
    edit_json(index_of(path), lambda tensors: tensors["weight_map"].update({"model.more.weight": shard}))


def duplicate_across_shards(path: Path) -> None:
    one, other = sorted(path.glob("*.safetensors"))[:2]
    edit_tensors(other, lambda tensors: tensors.update(dict([next(iter(load_file(one).items()))])))


SHARD_DAMAGES: dict[str, tuple[Change, str]] = {
    "shard missing": (lambda path: first_shard(path).unlink(), "the shard"),
    "tensor not in the index": (forget_in_index, "weight_map"),
    "index promises a tensor": (lambda path: promise_in_index(path, first_shard(path).name), "promises"),
    "index names a shard that is not there": (lambda path: promise_in_index(path, "x.safetensors"), "the shard x"),
    "index leads out of the directory": (lambda path: promise_in_index(path, "../x.safetensors"), "same directory"),
    "index names a pickle": (lambda path: promise_in_index(path, "pytorch_model.bin"), "same directory"),
    "index without a map": (lambda path: index_of(path).write_text("{}"), "weight_map"),
    "index with an empty map": (lambda path: index_of(path).write_text('{"weight_map": {}}'), "weight_map"),
    "index not JSON": (lambda path: index_of(path).write_text("nothing"), "valid JSON"),
    "tensor in two shards": (duplicate_across_shards, "every tensor in one shard"),
}


@pytest.mark.parametrize("damage", SHARD_DAMAGES)
def test_damage_of_shards_is_refused(sharded: Path, damage: str) -> None:
    change, message = SHARD_DAMAGES[damage]
    change(sharded)
    with pytest.raises(ModelFileError, match=re.escape(message)) as caught:
        open_model(sharded)
    assert caught.value.file.startswith(str(sharded))


def test_a_tokenizer_with_more_ids_than_embedding_rows_is_refused(tiny_hybrid: Path) -> None:
    config = open_model(tiny_hybrid).config
    check_vocabulary(config, config.vocab_size, tiny_hybrid)
    check_vocabulary(config, 1, tiny_hybrid)
    with pytest.raises(ModelFileError, match="at most vocab_size 320"):
        check_vocabulary(config, config.vocab_size + 1, tiny_hybrid / "tokenizer.json")


@pytest.mark.parametrize("name", ["absent", "absent.gguf", "some.txt"])
def test_a_path_that_is_no_model_is_not_found(tmp_path: Path, name: str) -> None:
    (tmp_path / "some.txt").write_text("text")
    with pytest.raises(ModelNotFoundError):
        open_model(tmp_path / name)
