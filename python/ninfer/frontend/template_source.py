"""Where a model's chat template is written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ninfer.config.json_file import read_optional_json_object
from ninfer.errors import ModelFileError

_GGUF_KEY = "tokenizer.chat_template"


@dataclass(frozen=True)
class TemplateSource:
    """The Jinja text of a chat template, and where it was found.

    tool_use: another text that takes its place when the request has tools; few models have one.
    """

    origin: str
    default: str
    tool_use: str | None = None


def template_of_file(path: Path) -> TemplateSource:
    """The template that is the whole of a text file."""
    try:
        return TemplateSource(str(path), path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelFileError(path, "(whole file)", "a chat template in UTF-8", error) from error


def template_of_hf_directory(directory: Path) -> TemplateSource | None:
    """The template of a Hugging Face directory; a `.jinja` file outranks tokenizer_config.json."""
    file = directory / "chat_template.jinja"
    if not file.exists():
        return _template_of_config(directory / "tokenizer_config.json")
    found = template_of_file(file)
    tool_use = directory / "additional_chat_templates" / "tool_use.jinja"
    if not tool_use.exists():
        return found
    return TemplateSource(found.origin, found.default, template_of_file(tool_use).default)


def template_of_gguf(metadata: Mapping[str, Any], file: str | Path) -> TemplateSource | None:
    """The template in GGUF metadata; `file` is only named in errors."""
    default, tool_use = metadata.get(_GGUF_KEY), metadata.get(f"{_GGUF_KEY}.tool_use")
    for key, value in ((_GGUF_KEY, default), (f"{_GGUF_KEY}.tool_use", tool_use)):
        if not isinstance(value, str | None):
            raise ModelFileError(file, key, "a string", type(value).__name__)
    return None if default is None else TemplateSource(str(file), default, tool_use)


def _template_of_config(file: Path) -> TemplateSource | None:
    value = read_optional_json_object(file).get("chat_template")
    if isinstance(value, str | None):
        return None if value is None else TemplateSource(str(file), value)
    named = _named_templates(value, file)
    if "default" not in named:
        raise ModelFileError(file, "chat_template", "a template named 'default'", ", ".join(named) or "none")
    return TemplateSource(str(file), named["default"], named.get("tool_use"))


def _named_templates(value: object, file: Path) -> dict[str, str]:
    """A list of templates with names, as some models write instead of one text."""
    try:
        assert isinstance(value, list)
        named = {item["name"]: item["template"] for item in value}
        assert all(isinstance(text, str) for pair in named.items() for text in pair)
    except (AssertionError, KeyError, TypeError) as error:
        expected = "a string, or a list of objects with 'name' and 'template'"
        raise ModelFileError(file, "chat_template", expected, type(value).__name__) from error
    return named
