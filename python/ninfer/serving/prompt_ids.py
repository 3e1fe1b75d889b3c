"""Prompts that come as they are, without a template."""

from __future__ import annotations

from typing import Any

from ninfer.serving.decode import json_type
from ninfer.serving.http_errors import bad_field
from ninfer.serving.served_model import ServedModel


def prompt_ids(prompt: str | list[Any] | None, model: ServedModel) -> list[int]:
    """Token ids of a text, of ids, or of a list that holds one such prompt."""
    if isinstance(prompt, list) and prompt and isinstance(prompt[0], str | list):
        if len(prompt) > 1:
            raise bad_field("prompt", f"one prompt per request is supported, found {len(prompt)}")
        prompt = prompt[0]
    if prompt is None or isinstance(prompt, str):
        return model.text_prompt(prompt or "")
    model.check_length(prompt)
    for token in prompt:
        if not isinstance(token, int) or isinstance(token, bool):
            raise bad_field("prompt", f"expected token ids, found {json_type(token)}")
    return model.token_prompt(prompt)
