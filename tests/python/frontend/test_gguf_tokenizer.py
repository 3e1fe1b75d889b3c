"""Token ids of GGUF tokenizers equal those that llama.cpp recorded or computed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ninfer.errors import ModelFileError
from ninfer.frontend.tokenizer import Tokenizer
from tests.fixtures.gguf_metadata import gguf_metadata

SMOLLM_IDS = Path(__file__).parent / "data" / "smollm_llama_cpp_ids.json"
RECORDED_PAIRS = {"llama-bpe": 47, "qwen2": 47, "qwen35": 51}


@pytest.mark.parametrize("name", RECORDED_PAIRS)
def test_ids_equal_every_recorded_pair(models_directory: Path, name: str) -> None:
    path = models_directory / f"ggml-vocab-{name}.gguf"
    tokenizer = Tokenizer.from_gguf(gguf_metadata(path), path)
    with Path(f"{path}.inp").open(encoding="utf-8", newline="") as file:
        texts = file.read().split("\n__ggml_vocab_test__\n")
    expected = [[int(token) for token in line.split()] for line in Path(f"{path}.out").read_text().split("\n")]
    assert len(texts) == len(expected) == RECORDED_PAIRS[name]
    for text, token_ids in zip(texts, expected, strict=True):
        assert tokenizer.encode(text, add_special=False, parse_special=False) == token_ids, repr(text)
        assert tokenizer.encode(text, add_special=False, parse_special=True) == token_ids, repr(text)


def test_smollm_ids_equal_a_llama_cpp_run(smollm_tokenizer: Tokenizer) -> None:
    cases = json.loads(SMOLLM_IDS.read_text(encoding="utf-8"))["cases"]
    assert len(cases) > 60
    for case in cases:
        found = smollm_tokenizer.encode(case["text"], add_special=False, parse_special=case["parse_special"])
        assert found == case["ids"], case


def test_smollm_named_tokens(smollm_tokenizer: Tokenizer) -> None:
    assert smollm_tokenizer.vocab_size == 49152
    assert smollm_tokenizer.bos_id == 1
    assert smollm_tokenizer.pad_id == 2
    assert smollm_tokenizer.eos_ids == {0, 2}
    assert smollm_tokenizer.special_ids == set(range(17))
    assert smollm_tokenizer.encode("a", add_special=True, parse_special=True) == [81]


def test_llama_begins_with_bos_though_the_file_is_silent(models_directory: Path) -> None:
    path = models_directory / "ggml-vocab-llama-bpe.gguf"
    metadata = gguf_metadata(path)
    assert "tokenizer.ggml.add_bos_token" not in metadata
    loud = Tokenizer.from_gguf({**metadata, "tokenizer.ggml.add_bos_token": False}, path)
    silent = Tokenizer.from_gguf(metadata, path)
    assert silent.encode("a", add_special=True, parse_special=True) == [128000, 64]
    assert silent.encode("a", add_special=False, parse_special=True) == [64]
    assert loud.encode("a", add_special=True, parse_special=True) == [64]
    assert silent.eos_ids == {128001, 128009}


TINY: dict[str, Any] = {
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "qwen2",
    "tokenizer.ggml.tokens": ["a", "b", "ab", "Ġ", "<|end|>", "<tool>", "unused"],
    "tokenizer.ggml.token_type": [1, 1, 1, 1, 3, 4, 5],
    "tokenizer.ggml.merges": ["a b"],
    "tokenizer.ggml.eos_token_id": 4,
    "tokenizer.ggml.eot_token_id": 2,
}


def test_token_types_decide_what_is_special() -> None:
    tokenizer = Tokenizer.from_gguf(TINY, "tiny.gguf")
    assert tokenizer.special_ids == {4}
    assert tokenizer.eos_ids == {2, 4}
    assert tokenizer.bos_id is None
    assert tokenizer.encode("ab<tool>a<|end|>", add_special=False, parse_special=True) == [2, 5, 0, 4]
    # The letters of "<|end|>" are not in this vocabulary, save "b" and "a": what matters is that 4 does not appear.
    assert tokenizer.encode("ab<tool><|end|>b", add_special=False, parse_special=False) == [2, 5, 1]


@pytest.mark.parametrize(
    ("change", "key", "found"),
    [
        ({"model": "llama"}, "model", "llama"),
        ({"model": None}, "model", "nothing"),
        ({"pre": "gpt-4o"}, "pre", "gpt-4o"),
        ({"tokens": None}, "tokens", "nothing"),
        ({"tokens": ["a", "a"]}, "tokens", "1"),
        ({"tokens": 7}, "tokens", "int"),
        ({"merges": ["a x"]}, "merges", "'a' 'x'"),
        ({"merges": ["ab"]}, "merges", "'ab' ''"),
        ({"token_type": [1]}, "token_type", "[1]"),
        ({"token_type": ["x"] * 7}, "token_type", "x"),
        ({"bos_token_id": 7}, "bos_token_id", "7"),
        ({"eos_token_id": -1}, "eos_token_id", "-1"),
        ({"eos_token_id": "x"}, "eos_token_id", "x"),
    ],
)
def test_damage_is_named(change: dict[str, Any], key: str, found: str) -> None:
    metadata = TINY | {f"tokenizer.ggml.{name}": value for name, value in change.items()}
    with pytest.raises(ModelFileError) as caught:
        Tokenizer.from_gguf(metadata, "tiny.gguf")
    assert caught.value.file == "tiny.gguf"
    assert caught.value.key == f"tokenizer.ggml.{key}"
    assert found in str(caught.value.found)
