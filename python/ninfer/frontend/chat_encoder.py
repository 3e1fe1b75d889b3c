"""From a conversation to token ids, with the rule that content is text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import partial

from ninfer.frontend.boundary_finder import find_boundaries
from ninfer.frontend.chat_prompt import ChatPrompt, normalised_prompt
from ninfer.frontend.chat_template import ChatTemplate
from ninfer.frontend.content_marks import ContentMarks
from ninfer.frontend.message_starts import Openings, Render
from ninfer.frontend.prompt_boundaries import PromptBoundaries
from ninfer.frontend.segmented_text import Segment, SegmentedText
from ninfer.frontend.tokenizer import Tokenizer


@dataclass(frozen=True)
class EncodedChat:
    """A rendered prompt and its token ids."""

    text: str
    token_ids: list[int]
    boundaries: PromptBoundaries = field(default_factory=PromptBoundaries)


@dataclass(frozen=True)
class RenderedChat:
    """A rendered prompt that is not tokenised yet. marked: the text with the content's signs marked, None where no sign
    needs it. prompt, render: what was rendered, and how to render a variation of it. learnt: see MessageStarts."""

    text: str
    marked: str | None
    marks: ContentMarks
    prompt: ChatPrompt
    render: Render
    learnt: Openings

    def encoded(self, tokenizer: Tokenizer) -> EncodedChat:
        """Tokenises, and finds the boundaries."""
        segmented = SegmentedText(tokenizer, self.text, self._segments(tokenizer))
        found = find_boundaries(segmented, self.prompt, self.render, self.learnt)
        token_ids, frontiers = segmented.encoded(found.places)
        return EncodedChat(self.text, token_ids, found.at(frontiers))

    def _segments(self, tokenizer: Tokenizer) -> list[Segment]:
        if self.marked is None or _count(tokenizer, self.marked) == _count(tokenizer, self.text):
            return [Segment(0, len(self.text), parse_special=True)]
        segments: list[Segment] = []
        done = place = 0
        for start, end, token_id in tokenizer.special_spans(self.marked):
            behind = place + len(self.marks.unmarked(self.marked[done:start]))
            segments += [Segment(place, behind), Segment(behind, behind + end - start, token_id=token_id)]
            done, place = end, behind + end - start
        return [*segments, Segment(place, len(self.text))]


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
    render = partial(template.render_normalised, template.now())
    plain = render(prompt)
    source = template.source.default + (template.source.tool_use or "")
    marks = ContentMarks(tokenizer.special_texts, source, prompt)
    if parse_special_in_content or not marks.needed:
        return RenderedChat(plain, None, marks, prompt, render, template.openings)
    marked = render(marks.with_all_signs_marked(prompt))
    if marks.unmarked(marked) != plain:
        # The template looks at the signs. It sees its input unchanged now, save for whole special tokens, and parts
        # of them at the ends of strings; and so it must in every variation.
        marked = render(marks.with_tokens_marked(prompt))
        render = partial(_rendered_marked, render, marks)
    return RenderedChat(marks.unmarked(marked), marked, marks, prompt, render, template.openings)


def _rendered_marked(render: Render, marks: ContentMarks, variation: ChatPrompt) -> str:
    return marks.unmarked(render(marks.with_tokens_marked(variation)))


def _count(tokenizer: Tokenizer, text: str) -> int:
    longest_first = sorted(tokenizer.special_texts, key=len, reverse=True)
    pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")
    return sum(1 for _ in pattern.finditer(text))
