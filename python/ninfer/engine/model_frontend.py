"""A model's tokenizer and chat template, from wherever its files keep them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from ninfer.errors import RequestError
from ninfer.frontend.chat_encoder import EncodedChat, RenderedChat, render_chat
from ninfer.frontend.chat_prompt import ChatPrompt
from ninfer.frontend.chat_template import ChatTemplate
from ninfer.frontend.template_source import (
    TemplateSource,
    template_of_file,
    template_of_gguf,
    template_of_hf_directory,
)
from ninfer.frontend.tokenizer import Tokenizer
from ninfer.weights.expected_tensors import check_vocabulary
from ninfer.weights.model_files import ModelFiles


@dataclass(frozen=True)
class ModelFrontend:
    """template is None for a base model: it completes text, but cannot chat."""

    tokenizer: Tokenizer
    template: ChatTemplate | None

    def encode_chat(
        self, prompt: ChatPrompt, *, parse_special_in_content: bool = False, most_tokens: int | None = None
    ) -> EncodedChat:
        """Raises what `render_chat` and, for most_tokens, `check_length` raise."""
        rendered = self.render_chat(prompt, parse_special_in_content=parse_special_in_content)
        if most_tokens is not None:
            self.check_length(rendered.text, most_tokens)
        return rendered.encoded(self.tokenizer)

    def render_chat(self, prompt: ChatPrompt, *, parse_special_in_content: bool = False) -> RenderedChat:
        """Raises RequestError if the model has no template, or one that ignores the tools of the request."""
        if self.template is None:
            raise RequestError("messages", "the model has no chat template; give one with --chat-template FILE")
        if prompt.tools and not self.template.reads_tools:
            raise RequestError("tools", "the model's chat template ignores tools")
        return render_chat(self.template, self.tokenizer, prompt, parse_special_in_content=parse_special_in_content)

    def check_length(self, text: str, most_tokens: int) -> None:
        """Raises RequestError for a text that is much too long, before all of it is tokenised."""
        least = self.tokenizer.fewest_tokens(text, most_tokens)
        if least > most_tokens:
            raise RequestError("prompt", f"at least {least} tokens, the context holds {most_tokens}")


def load_frontend(files: ModelFiles, template_file: Path | None, clock: Callable[[], datetime]) -> ModelFrontend:
    """Raises ModelFileError for a damaged tokenizer or template, or a tokenizer that knows ids without embeddings."""
    if files.gguf_metadata is not None:
        tokenizer = Tokenizer.from_gguf(files.gguf_metadata, files.path)
    else:
        tokenizer = Tokenizer.from_hf_directory(files.path)
    check_vocabulary(files.config, tokenizer.vocab_size, files.path)
    source = template_of_file(template_file) if template_file is not None else _own_template(files)
    template = None if source is None else ChatTemplate(source, tokenizer.named_tokens, clock)
    return ModelFrontend(tokenizer, template)


def _own_template(files: ModelFiles) -> TemplateSource | None:
    if files.gguf_metadata is not None:
        return template_of_gguf(files.gguf_metadata, files.path)
    return template_of_hf_directory(files.path)
