"""Streamed text equals one-shot decoding, and no piece holds a broken character."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import RequestError
from ninfer.frontend.detokenizer import Detokenizer
from ninfer.frontend.tokenizer import Tokenizer

TOKENIZER = Tokenizer.from_hf_directory(HYBRID_DIRECTORY)
BYTE_IDS = [i for i in range(TOKENIZER.vocab_size) if len(TOKENIZER.token_bytes(i)) == 1]
HIGH_BYTE_IDS = [i for i in BYTE_IDS if TOKENIZER.token_bytes(i) >= b"\x80"]
ANY_IDS = st.lists(st.integers(0, TOKENIZER.vocab_size - 1) | st.sampled_from(HIGH_BYTE_IDS), max_size=40)


@given(ANY_IDS)
def test_pieces_join_to_the_one_shot_decoding(token_ids: list[int]) -> None:
    detokenizer = Detokenizer(TOKENIZER)
    pieces = [detokenizer.push(token_id) for token_id in token_ids]
    assert "".join(pieces) + detokenizer.flush() == TOKENIZER.decode(token_ids, skip_special=False)


@given(ANY_IDS)
def test_hidden_tokens_do_not_split_characters(token_ids: list[int]) -> None:
    detokenizer = Detokenizer(TOKENIZER, TOKENIZER.special_ids)
    pieces = [detokenizer.push(token_id) for token_id in token_ids]
    assert "".join(pieces) + detokenizer.flush() == TOKENIZER.decode(token_ids, skip_special=True)


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="�"), max_size=20))
def test_valid_text_never_shows_a_replacement_character(text: str) -> None:
    by_value = {TOKENIZER.token_bytes(i): i for i in BYTE_IDS}
    detokenizer = Detokenizer(TOKENIZER)
    shown = ""
    for value in text.encode():
        shown += detokenizer.push(by_value[bytes([value])])
        assert text.startswith(shown)
    assert shown == text
    assert detokenizer.flush() == ""


def test_a_character_appears_with_its_last_byte() -> None:
    by_value = {TOKENIZER.token_bytes(i): i for i in BYTE_IDS}
    detokenizer = Detokenizer(TOKENIZER)
    assert [detokenizer.push(by_value[bytes([value])]) for value in "é👋".encode()] == ["", "é", "", "", "", "👋"]
    assert [detokenizer.push(by_value[bytes([value])]) for value in b"\xf0\x9fa\xe2"] == ["", "", "�a", ""]
    assert detokenizer.flush() == "�"


def test_ids_without_text_are_refused() -> None:
    with pytest.raises(RequestError):
        Detokenizer(TOKENIZER).push(1500)
