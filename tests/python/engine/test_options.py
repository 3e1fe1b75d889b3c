"""Options of `ninfer.load`: what is refused, and what the numbers become."""

from __future__ import annotations

from pathlib import Path

import pytest

import ninfer
from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import CapacityError, ModelFileError, OptionError


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("device", "tpu"),
        ("device", "cuda"),
        ("threads", 0),
        ("threads", "auto"),
        ("threads", 2.0),
        ("threads", True),
        ("cpu_isa", "mmx"),
        ("weights", "q5"),
        ("weights", None),
        ("kv_dtype", "fp8"),
        ("max_context", 0),
        ("max_context", "auto"),
        ("max_context", 1 << 20),
        ("kv_capacity", None),
        ("kv_capacity", -64),
        ("max_concurrency", 9),
        ("max_concurrency", None),
        ("max_concurrency", "auto"),
        ("prefill_chunk", 0),
        ("prefill_chunk", None),
        ("default_max_tokens", None),
        ("default_max_tokens", "auto"),
        ("chat_template", 3),
        ("no_such_option", 1),
    ],
)
def test_an_impossible_option_is_named_with_what_works(option: str, value: object) -> None:
    with pytest.raises(OptionError) as caught:
        ninfer.load(HYBRID_DIRECTORY, **{option: value})
    assert caught.value.option == option
    assert caught.value.works


def test_a_context_larger_than_the_pages_is_refused() -> None:
    with pytest.raises(OptionError, match="max_context=4096"):
        ninfer.load(HYBRID_DIRECTORY, max_context=4096, kv_capacity=64)


def test_pages_that_memory_cannot_hold_are_refused_with_both_numbers() -> None:
    with pytest.raises(CapacityError, match=r"kv_capacity needs \d+ bytes, \d+ are free"):
        ninfer.load(HYBRID_DIRECTORY, kv_capacity=1 << 36)


def test_given_sizes_are_used() -> None:
    options = {"threads": 2, "max_context": 128, "kv_capacity": 200, "max_concurrency": 2, "prefill_chunk": 7}
    with ninfer.load(HYBRID_DIRECTORY, cpu_isa="scalar", kv_dtype="int8", **options) as engine:
        capacity = engine.model.capacity
        assert (capacity.threads, capacity.cpu_isa, capacity.kv_dtype) == (2, "scalar", "int8")
        assert (capacity.max_context, capacity.max_concurrency) == (128, 2)
        assert capacity.kv_pages == 4, "200 tokens are 4 pages of 64"
        assert engine.model.prefill_chunk == 7
        assert engine.model.program.cpu_isa == "scalar"


def test_automatic_sizes_fit_the_model() -> None:
    with ninfer.load(HYBRID_DIRECTORY) as engine:
        capacity = engine.model.capacity
        assert capacity.max_context == 32768
        assert capacity.kv_pages == 4 * 32768 // 64
        assert engine.model.prefill_chunk % 64 == 0
        assert 64 <= engine.model.prefill_chunk <= 2048


def test_a_template_file_replaces_the_models(tmp_path: Path) -> None:
    file = tmp_path / "plain.jinja"
    file.write_text("{% for message in messages %}[{{ message.content }}]{% endfor %}")
    with ninfer.load(HYBRID_DIRECTORY, chat_template=str(file)) as engine:
        assert engine.chat_prompt_ids([{"role": "user", "content": "hi"}])[0] == "[hi]"
    with pytest.raises(ModelFileError, match=r"missing\.jinja"):
        ninfer.load(HYBRID_DIRECTORY, chat_template=tmp_path / "missing.jinja")


def test_defaults_are_those_of_the_contract() -> None:
    options = EngineOptions()
    assert (options.max_concurrency, options.default_max_tokens, options.kv_capacity) == (4, 4096, "auto")
