"""Marks the characters that a request contributes to a prompt, so that they can be told from the template's own.

Some characters of the request's strings are exchanged for private-use stand-ins before rendering. A stand-in has no
meaning to a template: it is not trimmed, not escaped, and as long as what it stands for. A special token that comes
out of the template with a stand-in in it was, in part, written by the request, and so is text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.private_characters import json_escape, strings_of, unused_characters

# The first unused characters are for who marks a prompt that has these marks already.
_LEFT_FOR_OTHERS = 8


class ContentMarks:
    """Stand-ins for one prompt and one vocabulary's special tokens. Both kinds of marks are undone by `unmarked`."""

    def __init__(self, special_texts: Sequence[str], template_text: str, prompt: ChatPrompt) -> None:
        tokens = sorted(filter(None, special_texts), key=len, reverse=True)
        contents = [list(prompt.messages), list(prompt.tools or ()), prompt.template_kwargs]
        self._texts = "\n".join(strings_of(contents))
        signs = {sign for token in tokens for sign in token if _is_sign(sign)}
        ordered = sorted(signs.union(*({token[0], token[-1]} for token in tokens)))
        unused = unused_characters(self._texts + template_text + "".join(tokens), _LEFT_FOR_OTHERS + len(ordered))
        self._stand_in = dict(zip(ordered, unused[_LEFT_FOR_OTHERS:], strict=True))
        self._signs = sorted(signs)
        self._tokens = tokens
        self._beginnings = {token[:length] for token in tokens for length in range(1, len(token))}
        self._endings = {token[-length:] for token in tokens for length in range(1, len(token))}
        self._longest = max(map(len, tokens), default=0)
        self._some_without_signs = any(not signs.intersection(token) for token in tokens)

    @property
    def needed(self) -> bool:
        """Whether the request could contribute to a special token at all."""
        return any(sign in self._texts for sign in self._stand_in)

    def with_all_signs_marked(self, prompt: ChatPrompt) -> ChatPrompt:
        """Every punctuation sign of the special tokens is marked, wherever the request has it.

        Exact: a special token without a mark has all its signs from the template. But a template that looks for such
        signs in its input no longer finds them.
        """
        return _mapped_prompt(prompt, self._with_signs_marked)

    def with_tokens_marked(self, prompt: ChatPrompt) -> ChatPrompt:
        """Special tokens are marked, and parts of them at the ends of a string, which a neighbour could complete."""
        return _mapped_prompt(prompt, self._with_occurrences_marked)

    def unmarked(self, text: str) -> str:
        """The text with every stand-in, also one that a JSON writer escaped, turned back."""
        for sign, stand_in in self._stand_in.items():
            text = text.replace(json_escape(stand_in), json_escape(sign)).replace(stand_in, sign)
        return text

    def _with_signs_marked(self, text: str) -> str:
        if self._some_without_signs:
            text = self._with_occurrences_marked(text)
        # One replacement per sign: unlike one `translate` of a long text, none keeps other threads waiting for long.
        for sign in self._signs:
            text = text.replace(sign, self._stand_in[sign])
        return text

    def _with_occurrences_marked(self, text: str) -> str:
        places = {place for token in self._tokens for place in _occurrences(text, token)}
        bare = text.strip()
        start = text.find(bare)
        for length in range(1, min(self._longest, len(bare) + 1)):
            if bare[-length:] in self._beginnings:
                places.add(start + len(bare) - length)
            if bare[:length] in self._endings:
                places.add(start + length - 1)
        if not places:
            return text
        return "".join(self._stand_in[sign] if i in places else sign for i, sign in enumerate(text))


def _occurrences(text: str, token: str) -> Iterator[int]:
    place = text.find(token)
    while place >= 0:
        yield place
        place = text.find(token, place + 1)


def _is_sign(character: str) -> bool:
    """Punctuation that JSON writes as it is; words and white space stay, since templates compare and trim them."""
    return not (character.isalnum() or character.isspace() or character in '_"\\') and character.isprintable()


def _mapped_prompt(prompt: ChatPrompt, change: Callable[[str], str]) -> ChatPrompt:
    return replace(
        prompt,
        messages=_mapped(prompt.messages, change),
        tools=None if prompt.tools is None else _mapped(prompt.tools, change),
        template_kwargs={key: _mapped(value, change) for key, value in prompt.template_kwargs.items()},
    )


def _mapped(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, Mapping):
        return {_mapped(key, change): _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_mapped(item, change) for item in value]
    return value
