"""Renders conversations with a model's chat template."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
import jinja2.meta

from ninfer.errors import ModelFileError, RequestError
from ninfer.frontend.chat_prompt import ChatPrompt, normalised_prompt
from ninfer.frontend.private_characters import strings_of, unused_characters
from ninfer.frontend.template_environment import template_environment
from ninfer.frontend.template_source import TemplateSource

Clock = Callable[[], datetime]


class ChatTemplate:
    """A compiled template with the model's special tokens; immutable, and usable from several threads at once.

    special_tokens: text by name (`bos_token`, ...), as templates refer to them. clock: the local time that templates
    ask for with `strftime_now`. A template that cannot be compiled is a ModelFileError.
    """

    def __init__(self, source: TemplateSource, special_tokens: Mapping[str, str], clock: Clock) -> None:
        self.source = source
        self._special_tokens = dict(special_tokens)
        self._clock = clock
        # What MessageStarts has learnt of this template.
        self.openings: dict[tuple[str, str], int] = {}
        self._environment = template_environment()
        self._default = self._compiled(source.default)
        self._tool_use = self._default if source.tool_use is None else self._compiled(source.tool_use)

    @property
    def reads_tools(self) -> bool:
        """Whether the template looks at `tools` at all; where it does not, a request with tools cannot be served."""
        text = self.source.default if self.source.tool_use is None else self.source.tool_use
        return "tools" in jinja2.meta.find_undeclared_variables(self._environment.parse(text))

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool,
        continue_final_message: bool = False,
        **kwargs: Any,
    ) -> str:
        """The prompt's text; RequestError with the template's own message where it refuses the conversation, or only
        because of `kwargs`."""
        prompt = ChatPrompt(messages, tools, add_generation_prompt, continue_final_message, kwargs)
        return self.render_at(self._clock(), prompt)

    def now(self) -> datetime:
        """The clock's time, for rendering the same moment more than once."""
        return self._clock()

    def render_at(self, moment: datetime, prompt: ChatPrompt) -> str:
        """As `render`, at a given time."""
        return self.render_normalised(moment, normalised_prompt(prompt))

    def render_normalised(self, moment: datetime, prompt: ChatPrompt) -> str:
        """As `render_at`, of a prompt that needs no normalising any more."""
        if not prompt.continue_final_message:
            return self._rendered(moment, prompt, prompt.messages)
        [tag] = unused_characters("".join(strings_of([list(prompt.messages), self.source.default])), 1)
        messages = [*prompt.messages[:-1], _tagged(prompt.messages, tag)]
        return _cut_at_tag(self._rendered(moment, prompt, messages), tag)

    def _compiled(self, text: str) -> jinja2.Template:
        try:
            return self._environment.from_string(text)
        except Exception as error:  # jinja writes Python of the text, which Python's own compiler may refuse in any way
            line = f"line {error.lineno}: " if isinstance(error, jinja2.TemplateSyntaxError) else ""
            raise ModelFileError(
                self.source.origin, "chat_template", "a Jinja template", f"{line}{str(error) or type(error).__name__}"
            ) from error

    def _rendered(self, moment: datetime, prompt: ChatPrompt, messages: Sequence[Mapping[str, Any]]) -> str:
        template = self._default if prompt.tools is None else self._tool_use
        common = {"documents": None, "strftime_now": moment.strftime, **self._special_tokens}
        named = {
            "messages": list(messages),
            "tools": None if prompt.tools is None else list(prompt.tools),
            "add_generation_prompt": prompt.add_generation_prompt,
        }
        try:
            return template.render({**common, **prompt.template_kwargs, **named})
        except Exception as error:  # a template may run into anything that Python's values can raise
            kwargs_to_blame = bool(prompt.template_kwargs) and _renders(template, {**common, **named})
            raise _refusal("chat_template_kwargs" if kwargs_to_blame else "messages", error) from error


def _renders(template: jinja2.Template, variables: Mapping[str, Any]) -> bool:
    try:
        template.render(variables)
    except Exception:  # as above
        return False
    return True


def _refusal(param: str, error: Exception) -> RequestError:
    if isinstance(error, jinja2.TemplateError):
        return RequestError(param, f"the chat template refuses: {error.message}")
    return RequestError(param, f"the chat template fails: {type(error).__name__}: {error}")


def _tagged(messages: Sequence[Mapping[str, Any]], tag: str) -> dict[str, Any]:
    """The last message with a tag at the end of its text. The space after it shows whether a template trims."""
    last = messages[-1] if messages else {}
    content = last.get("content")
    if isinstance(content, str):
        return {**last, "content": f"{content}{tag} "}
    if isinstance(content, list | tuple):
        for index in reversed(range(len(content))):
            part = content[index]
            if isinstance(part, Mapping) and isinstance(part.get("text"), str):
                tagged = {**part, "text": f"{part['text']}{tag} "}
                return {**last, "content": [*content[:index], tagged, *content[index + 1 :]]}
    raise RequestError("continue_final_message", "the last message has no text to go on with")


def _cut_at_tag(rendered: str, tag: str) -> str:
    before, found, after = rendered.rpartition(tag)
    if not found:
        raise RequestError("continue_final_message", "the chat template does not show the last message's text")
    return before if after.startswith(" ") else before.rstrip()
