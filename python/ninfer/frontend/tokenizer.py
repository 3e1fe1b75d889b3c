"""Text to token ids and back, for byte-level BPE vocabularies."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import normalizers

from ninfer.errors import RequestError
from ninfer.frontend.byte_alphabet import spelled_bytes
from ninfer.frontend.control_edges import ControlEdges
from ninfer.frontend.gguf_tokenizer import gguf_tokenizer_parts
from ninfer.frontend.hf_tokenizer import hf_tokenizer_parts
from ninfer.frontend.placed_ids import PlacedIds
from ninfer.frontend.tokenizer_parts import TokenizerParts

# Composing characters makes UTF-8 shorter, by up to 3.5: U+1FBE U+0308 U+0301 becomes U+0390.
_COMPOSED_SHRINK = 4
# More than a token of ordinary text has; and what is tokenised in no time.
_USUAL_CHARACTERS = 8
_LEAST_STRETCH = 1 << 16
# Where every word splitter splits: no token holds the end of a word and the blank behind it.
_BETWEEN_WORDS = re.compile("[A-Za-z](?= [A-Za-z])")


class Tokenizer:
    """An immutable tokenizer; every method may be called from several threads at once.

    A *special* token is a control token of the vocabulary (`<|im_start|>`). Other added tokens are ordinary text that
    happens to have an id of its own, and are recognised everywhere. `vocab_size` is the highest id plus one, and
    `missing_ids` are those below it that stand for nothing, so that a model must not pick them.
    """

    def __init__(self, parts: TokenizerParts) -> None:
        self._backend = parts.backend
        self.named_tokens: Mapping[str, str] = dict(parts.named_tokens)
        self.eos_ids = parts.eos_ids
        added = parts.backend.get_added_tokens_decoder()
        self._added_text = {token_id: token.content for token_id, token in added.items()}
        self.special_ids = frozenset(token_id for token_id, token in added.items() if token.special)
        self.special_texts = tuple(sorted(self._added_text[token_id] for token_id in self.special_ids))
        known_ids = set(parts.backend.get_vocab(with_added_tokens=True).values())
        self.vocab_size = 1 + max(known_ids, default=-1)
        # Two ids may share one spelling, of which the vocabulary then lists one: hence the second look.
        unlisted = (token_id for token_id in range(self.vocab_size) if token_id not in known_ids)
        self.missing_ids = frozenset(token_id for token_id in unlisted if not self.has_token(token_id))
        self._text_backend = _without_special_parsing(parts.backend)

    @classmethod
    def from_hf_directory(cls, path: str | Path) -> Tokenizer:
        """Reads `tokenizer.json` and the files beside it; ModelFileError names what is damaged or unsupported."""
        return cls(hf_tokenizer_parts(Path(path)))

    @classmethod
    def from_gguf(cls, metadata: Mapping[str, Any], file: str | Path) -> Tokenizer:
        """Builds the tokenizer that GGUF metadata describe; `file` is only named in errors."""
        return cls(gguf_tokenizer_parts(metadata, file))

    @cached_property
    def bos_id(self) -> int | None:
        """The id that begins a sequence, if the vocabulary has one."""
        return self._named_id("bos_token")

    @cached_property
    def pad_id(self) -> int | None:
        """The id that fills unused places, if the vocabulary has one."""
        return self._named_id("pad_token")

    def encode(self, text: str, *, add_special: bool, parse_special: bool) -> list[int]:
        """Token ids of `text`.

        add_special: put the tokens around it that the model expects around a text (as a rule the BOS token, or none).
        parse_special: special tokens that stand in the text become control tokens; otherwise they are plain text.
        """
        backend = self._backend if parse_special else self._text_backend
        return list(_encoding(backend.encode_batch_fast, text, add_special).ids)

    def fewest_tokens(self, text: str, enough: int) -> int:
        """How many tokens `text` has at least, found without tokenising all of a text that has more than `enough`.

        A text that is short for `enough` tokens is not looked at.
        """
        most = self._token_bytes_at_most
        least = 0 if most is None else -(-len(text.encode(errors="replace")) // most)
        stretch = max(enough * _USUAL_CHARACTERS, _LEAST_STRETCH)
        if least > enough or len(text) <= stretch or self.added_text_has_blanks:
            return least
        counted = start = 0
        while counted <= enough and (cut := _BETWEEN_WORDS.search(text, start + stretch, start + 2 * stretch)):
            counted += len(self.encode(text[start : cut.end()], add_special=False, parse_special=True))
            start = cut.end()
        return max(least, counted)

    def encode_placed(self, text: str, *, parse_special: bool) -> PlacedIds:
        """As `encode`, with the places of the tokens, which takes half as long again."""
        backend = self._backend if parse_special else self._text_backend
        return PlacedIds(_encoding(backend.encode_batch, text, False))

    def special_spans(self, text: str) -> list[tuple[int, int, int]]:
        """Where the special tokens of `text` stand: (first character, end, id), in order."""
        placed = self.encode_placed(text, parse_special=True)
        special = [(index, token_id) for index, token_id in enumerate(placed.ids) if token_id in self.special_ids]
        return [(*placed.span(index), token_id) for index, token_id in special]

    def decode(self, token_ids: Iterable[int], skip_special: bool) -> str:
        """The text of all ids at once; bytes that are no UTF-8 become U+FFFD."""
        hidden = self.special_ids if skip_special else frozenset()
        return b"".join(self.token_bytes(token_id) for token_id in token_ids if token_id not in hidden).decode(
            errors="replace"
        )

    def token_id(self, text: str) -> int | None:
        """The id of the vocabulary entry spelled exactly so, if there is one."""
        found = self._backend.token_to_id(text)
        return None if found is None else int(found)

    def has_token(self, token_id: int) -> bool:
        """Whether the id stands for text; a model's embedding may have more rows than that."""
        return self._spelling(token_id) is not None

    def token_bytes(self, token_id: int) -> bytes:
        """The exact bytes of one token, the text of an added one; RequestError for an id that stands for nothing."""
        added = self._added_text.get(token_id)
        if added is not None:
            return added.encode()
        spelling = self._spelling(token_id)
        if spelling is None:
            raise RequestError("tokens", f"{token_id} is no token id; the vocabulary has {self.vocab_size}")
        return spelled_bytes(spelling)

    @cached_property
    def control_edges(self) -> ControlEdges:
        """Where added tokens cut a text."""
        normalises = self._backend.normalizer is not None
        return ControlEdges(list(self._backend.get_added_tokens_decoder().values()), normalises=normalises)

    @cached_property
    def added_text_has_blanks(self) -> bool:
        """Whether a blank between two words may stand inside an added token."""
        return any(" " in text for text in self._added_text.values())

    @cached_property
    def _token_bytes_at_most(self) -> int | None:
        """How many bytes of a text one token can stand for; None if there is no end to it."""
        normalizer = self._backend.normalizer
        if normalizer is not None and not isinstance(normalizer, normalizers.NFC):
            return None
        if any(token.lstrip or token.rstrip for token in self._backend.get_added_tokens_decoder().values()):
            # Such a token takes the blanks around it with it.
            return None
        longest = max(len(self.token_bytes(token)) for token in range(self.vocab_size) if token not in self.missing_ids)
        return longest * (1 if normalizer is None else _COMPOSED_SHRINK)

    def _spelling(self, token_id: int) -> str | None:
        return self._backend.id_to_token(token_id) if 0 <= token_id < self.vocab_size else None

    def _named_id(self, name: str) -> int | None:
        text = self.named_tokens.get(name)
        return None if text is None else self.token_id(text)


def _encoding(
    encode_batch: Callable[..., list[tokenizers.Encoding]], text: str, add_special: bool
) -> tokenizers.Encoding:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise RequestError("content", f"the text is not valid Unicode: {error}") from error
    # Only the batch calls let other threads run meanwhile.
    return encode_batch([text], add_special_tokens=add_special)[0]


def _without_special_parsing(backend: tokenizers.Tokenizer) -> tokenizers.Tokenizer:
    """A second backend over the same vocabulary that reads special tokens as text.

    The switch is a property of the backend, so flipping it per call would race between threads. The model, which is
    nearly all of the memory, is shared.
    """
    twin = tokenizers.Tokenizer(backend.model)
    if backend.normalizer is not None:
        twin.normalizer = backend.normalizer
    if backend.pre_tokenizer is not None:
        twin.pre_tokenizer = backend.pre_tokenizer
    if backend.post_processor is not None:
        twin.post_processor = backend.post_processor
    added = sorted(backend.get_added_tokens_decoder().items())
    twin.add_tokens([token for _, token in added])
    if any(twin.token_to_id(token.content) != token_id for token_id, token in added):
        # Ids with gaps cannot be given by adding in order; such a vocabulary is loaded a second time instead.
        twin = tokenizers.Tokenizer.from_str(backend.to_str())
    twin.encode_special_tokens = True
    return twin
