"""The tokenizer of a Hugging Face directory equals `transformers`, and takes special tokens in text for text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import ModelFileError, RequestError
from ninfer.frontend.tokenizer import Tokenizer
from tests.fixtures.tiny_tokenizer import write_tiny_tokenizer

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
PIECES = st.sampled_from(
    ["<|im_start|>", "<|im_end|>", "<|im_", "<think>", "</think>", " ", "\n", "the", "é", "👋", "7"]
)
MIXED = st.lists(PIECES | TEXTS, max_size=8).map("".join)
DEMO = Tokenizer.from_hf_directory(HYBRID_DIRECTORY)
DEMO_ORACLE = AutoTokenizer.from_pretrained(HYBRID_DIRECTORY)


@given(MIXED)
def test_ids_equal_transformers(text: str) -> None:
    assert DEMO.encode(text, add_special=False, parse_special=True) == DEMO_ORACLE.encode(
        text, add_special_tokens=False
    )
    plain = DEMO_ORACLE.encode(text, add_special_tokens=False, split_special_tokens=True)
    assert DEMO.encode(text, add_special=False, parse_special=False) == plain


@given(MIXED)
def test_text_survives_and_never_becomes_control_tokens(text: str) -> None:
    ids = DEMO.encode(text, add_special=False, parse_special=False)
    assert not DEMO.special_ids.intersection(ids)
    assert DEMO.decode(ids, skip_special=False) == text


@given(st.lists(st.integers(0, DEMO.vocab_size - 1), max_size=40))
def test_decoding_equals_transformers(token_ids: list[int]) -> None:
    assert DEMO.decode(token_ids, False) == DEMO_ORACLE.decode(token_ids, clean_up_tokenization_spaces=False)
    assert DEMO.decode(token_ids, True) == DEMO_ORACLE.decode(
        token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )


def test_named_tokens_of_the_demo() -> None:
    assert (DEMO.bos_id, DEMO.pad_id, DEMO.eos_ids) == (None, 0, {2})
    assert DEMO.vocab_size == 1298
    assert DEMO.special_ids == set(range(9))
    assert DEMO.token_id("<think>") == 3
    assert DEMO.token_id("no such token") is None
    assert DEMO.named_tokens == {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"}


def test_every_byte_has_a_token_with_its_exact_bytes() -> None:
    single = {DEMO.token_bytes(token_id) for token_id in range(DEMO.vocab_size)}
    assert {bytes([value]) for value in range(256)} <= single
    assert DEMO.token_bytes(2) == b"<|im_end|>"


@pytest.mark.parametrize("token_id", [-1, 1298, 1535, 2**40])
def test_ids_without_text_are_refused(token_id: int) -> None:
    assert not DEMO.has_token(token_id)
    with pytest.raises(RequestError, match=str(token_id)):
        DEMO.token_bytes(token_id)
    with pytest.raises(RequestError, match="1298"):
        DEMO.decode([token_id], skip_special=True)


def test_lone_surrogates_are_refused() -> None:
    with pytest.raises(RequestError, match="surrogates"):
        DEMO.encode("a\ud800", add_special=False, parse_special=True)


def _tiny(path: Path, config: dict[str, Any], changes: dict[str, Any] | None = None) -> Path:
    write_tiny_tokenizer(path, 266)
    file = path / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | config))
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    (path / "tokenizer.json").write_text(json.dumps(tokenizer | (changes or {})))
    return path


TEMPLATE = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<|im_start|>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {"<|im_start|>": {"id": "<|im_start|>", "ids": [1], "tokens": ["<|im_start|>"]}},
}
BOS = {"bos_token": "<|im_start|>"}


@pytest.mark.parametrize(
    ("config", "changes"),
    [
        ({}, {}),
        (BOS, {}),
        (BOS | {"add_bos_token": True}, {}),
        (BOS | {"add_bos_token": True, "add_eos_token": True}, {}),
        (BOS, {"post_processor": TEMPLATE}),
        (BOS | {"add_bos_token": False}, {"post_processor": TEMPLATE}),
        (BOS | {"add_eos_token": True}, {"post_processor": TEMPLATE}),
        ({"add_bos_token": True}, {}),
        ({"bos_token": {"__type": "AddedToken", "content": "<s>", "special": True}, "add_bos_token": True}, {}),
        ({"additional_special_tokens": ["<extra>"]}, {}),
        ({"extra_special_tokens": {"tool_token": "<extra>"}}, {}),
        ({"added_tokens_decoder": {"266": {"content": "<extra>", "special": True, "rstrip": True}}}, {}),
        ({}, {"truncation": {"max_length": 2, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}}),
    ],
)
def test_added_tokens_and_bos_equal_transformers(
    tmp_path: Path, config: dict[str, Any], changes: dict[str, Any]
) -> None:
    path = _tiny(tmp_path, config, changes)
    oracle = AutoTokenizer.from_pretrained(path)
    tokenizer = Tokenizer.from_hf_directory(path)
    for text in ("", "the thing", "<s>a <extra>  b<|im_end|>"):
        expected = oracle.encode(text, add_special_tokens=True)
        assert tokenizer.encode(text, add_special=True, parse_special=True) == expected
    assert tokenizer.bos_id == oracle.bos_token_id
    named = set(oracle.all_special_ids)
    assert named <= tokenizer.special_ids <= named | {1, 2, 266}


def test_end_ids_come_from_all_three_files(tmp_path: Path) -> None:
    path = _tiny(tmp_path, {})
    (path / "config.json").write_text('{"eos_token_id": 1}')
    (path / "generation_config.json").write_text('{"eos_token_id": [2, 5]}')
    assert Tokenizer.from_hf_directory(path).eos_ids == {0, 1, 2, 5}


def test_minus_one_is_how_a_file_says_that_it_has_no_end_token(tmp_path: Path) -> None:
    path = _tiny(tmp_path, {})
    (path / "config.json").write_text('{"eos_token_id": -1}')
    (path / "generation_config.json").write_text('{"eos_token_id": -1}')
    assert Tokenizer.from_hf_directory(path).eos_ids == {0}


def test_ids_that_stand_for_nothing_are_listed(tmp_path: Path) -> None:
    assert DEMO.missing_ids == frozenset()
    path = _tiny(tmp_path, {})
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["far"] = 270
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    found = Tokenizer.from_hf_directory(path)
    assert found.vocab_size == 271
    assert found.missing_ids == {266, 267, 268, 269}
    assert all(found.has_token(one) != (one in found.missing_ids) for one in range(found.vocab_size))


def test_ids_with_gaps_keep_their_numbers(tmp_path: Path) -> None:
    path = _tiny(tmp_path, {})
    tokenizer = json.loads((path / "tokenizer.json").read_text())
    tokenizer["added_tokens"].append(tokenizer["added_tokens"][0] | {"id": 900, "content": "<far>"})
    (path / "tokenizer.json").write_text(json.dumps(tokenizer))
    found = Tokenizer.from_hf_directory(path)
    expected = AutoTokenizer.from_pretrained(path).encode("a<far>b")
    assert found.encode("a<far>b", add_special=False, parse_special=True) == expected
    assert not found.special_ids.intersection(found.encode("a<far>b", add_special=False, parse_special=False))


@pytest.mark.parametrize(
    ("file", "text", "key"),
    [
        ("tokenizer.json", None, "(whole file)"),
        ("tokenizer.json", "", "(whole file)"),
        ("tokenizer.json", '{"version": "1.0", "model": {"type": "BPE"}}', "(whole file)"),
        ("tokenizer.json", '{"model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"}}', "model.type"),
        ("tokenizer.json", '{"model": {"type": "BPE", "vocab": {"a": 0}, "merges": []}}', "decoder.type"),
        ("tokenizer_config.json", "[]", "content"),
        ("tokenizer_config.json", "{", "content"),
        ("tokenizer_config.json", '{"extra_special_tokens": 5}', "extra_special_tokens"),
        ("tokenizer_config.json", '{"extra_special_tokens": "abc"}', "extra_special_tokens"),
        ("tokenizer_config.json", '{"extra_special_tokens": false}', "extra_special_tokens"),
        ("tokenizer_config.json", '{"extra_special_tokens": {"a": 5}}', "extra_special_tokens"),
        ("tokenizer_config.json", '{"additional_special_tokens": ["\\ud800"]}', "additional_special_tokens"),
        ("tokenizer_config.json", '{"added_tokens_decoder": 5}', "added_tokens_decoder"),
        ("tokenizer_config.json", '{"added_tokens_decoder": ["x"]}', "added_tokens_decoder"),
        ("special_tokens_map.json", "[]", "content"),
        ("tokenizer_config.json", '{"eos_token": 7}', "eos_token"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"x": "y"}}', "added_tokens_decoder"),
        ("tokenizer_config.json", '{"added_tokens_decoder": {"7": "y"}}', "added_tokens_decoder.7"),
        ("generation_config.json", '{"eos_token_id": "2"}', "eos_token_id"),
        ("generation_config.json", '{"eos_token_id": -2}', "eos_token_id"),
        ("generation_config.json", '{"eos_token_id": [-1]}', "eos_token_id"),
        ("config.json", '{"eos_token_id": [[1]]}', "eos_token_id"),
    ],
)
def test_damage_is_named(tmp_path: Path, file: str, text: str | None, key: str) -> None:
    path = _tiny(tmp_path, {})
    if text is None:
        (path / file).unlink()
    else:
        (path / file).write_text(text)
    with pytest.raises(ModelFileError) as caught:
        Tokenizer.from_hf_directory(path)
    assert Path(caught.value.file).name == file
    assert caught.value.key == key
