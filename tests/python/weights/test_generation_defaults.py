"""Generation defaults of a Hugging Face directory; those of GGUF files are in test_gguf_model.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ninfer.errors import ModelFileError
from ninfer.weights.model_files import GenerationDefaults
from ninfer.weights.open_model import open_model


@pytest.mark.parametrize(
    ("generation", "expected"),
    [
        ({"eos_token_id": [3, 4]}, GenerationDefaults(eos_ids=(3, 4, 0))),
        ({"eos_token_id": -1}, GenerationDefaults(eos_ids=(0,))),
        ({"eos_token_id": [0, 319]}, GenerationDefaults(eos_ids=(0, 319))),
        ({"top_k": -1, "top_p": 0, "min_p": 1}, GenerationDefaults((0,), top_p=0.0, min_p=1.0)),
        ({"temperature": 0.6, "top_k": 20, "top_p": 0.95}, GenerationDefaults((0,), None, None, None, 0.6, 20, 0.95)),
        ({"pad_token_id": -1, "do_sample": True}, GenerationDefaults(eos_ids=(0,), do_sample=True)),
        (None, GenerationDefaults(eos_ids=(0,))),
    ],
)
def test_generation_defaults(hybrid: Path, generation: dict[str, Any] | None, expected: GenerationDefaults) -> None:
    (hybrid / "generation_config.json").unlink(missing_ok=True)
    if generation is not None:
        (hybrid / "generation_config.json").write_text(json.dumps(generation))
    assert open_model(hybrid).generation == expected


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("temperature", -1),
        ("temperature", 10**400),
        ("top_p", 1.5),
        ("top_p", "0.9"),
        ("min_p", -0.1),
        ("repetition_penalty", 0),
        ("top_k", -2),
        ("top_k", 1.5),
        ("do_sample", "yes"),
        ("eos_token_id", 320),
        ("eos_token_id", [0, 320]),
        ("eos_token_id", [True]),
    ],
)
def test_generation_defaults_that_cannot_be_are_refused(hybrid: Path, key: str, value: object) -> None:
    file = hybrid / "generation_config.json"
    file.write_text(json.dumps({"do_sample": True} | {key: value}))
    with pytest.raises(ModelFileError) as caught:
        open_model(hybrid)
    assert (caught.value.file, caught.value.key) == (str(file), key)
