"""From a conversation to token ids, with the rule that content is text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ninfer.frontend.chat_prompt import ChatPrompt, normalised_prompt
from ninfer.frontend.chat_template import ChatTemplate
from ninfer.frontend.content_marks import ContentMarks
from ninfer.frontend.tokenizer import Tokenizer


@dataclass(frozen=True)
class EncodedChat:
    """A rendered prompt and its token ids."""

    text: str
    token_ids: list[int]


@dataclass(frozen=True)
class RenderedChat:
    """A rendered prompt that is not tokenised yet. marked: the text with the content's signs marked, None where no sign
    needs it."""

    text: str
    marked: str | None
    marks: ContentMarks

    def encoded(self, tokenizer: Tokenizer) -> EncodedChat:
        if self.marked is None:
            return EncodedChat(self.text, tokenizer.encode(self.text, add_special=False, parse_special=True))
        return EncodedChat(self.text, _token_ids(tokenizer, self.marks, self.marked, self.text))


def encode_chat(
    template: ChatTemplate, tokenizer: Tokenizer, prompt: ChatPrompt, *, parse_special_in_content: bool = False
) -> EncodedChat:
    """Renders and tokenises. Special tokens that the template writes become control tokens.

    Special tokens that stand in messages, tools or template variables are tokenised as plain text, also where they
    only come about by joining; `parse_special_in_content` turns that off. Where the request writes none, the ids are
    those of the rendered text.
    """
    return render_chat(template, tokenizer, prompt, parse_special_in_content=parse_special_in_content).encoded(
        tokenizer
    )


def render_chat(
    template: ChatTemplate, tokenizer: Tokenizer, prompt: ChatPrompt, *, parse_special_in_content: bool = False
) -> RenderedChat:
    """The first half of `encode_chat`."""
    prompt = normalised_prompt(prompt)
    moment = template.now()
    plain = template.render_at(moment, prompt)
    source = template.source.default + (template.source.tool_use or "")
    marks = ContentMarks(tokenizer.special_texts, source, prompt)
    if parse_special_in_content or not marks.needed:
        return RenderedChat(plain, None, marks)
    marked = template.render_at(moment, marks.with_all_signs_marked(prompt))
    if marks.unmarked(marked) != plain:
        # The template looks at the signs. It sees its input unchanged now, save for whole special tokens, and parts
        # of them at the ends of strings.
        marked = template.render_at(moment, marks.with_tokens_marked(prompt))
    return RenderedChat(marks.unmarked(marked), marked, marks)


def _token_ids(tokenizer: Tokenizer, marks: ContentMarks, marked: str, text: str) -> list[int]:
    pattern = re.compile("|".join(map(re.escape, sorted(tokenizer.special_texts, key=len, reverse=True))) or "(?!)")
    if _count(pattern, marked) == _count(pattern, text):
        return tokenizer.encode(text, add_special=False, parse_special=True)
    token_ids: list[int] = []
    done = 0
    for start, end, token_id in tokenizer.special_spans(marked):
        stretch = marks.unmarked(marked[done:start])
        token_ids += [*tokenizer.encode(stretch, add_special=False, parse_special=False), token_id]
        done = end
    return token_ids + tokenizer.encode(marks.unmarked(marked[done:]), add_special=False, parse_special=False)


def _count(pattern: re.Pattern[str], text: str) -> int:
    return sum(1 for _ in pattern.finditer(text))
