"""Options of `ninfer.load`: what is refused, and what the numbers become."""

from __future__ import annotations

from pathlib import Path

import pytest

import ninfer
from ninfer.config.engine_options import EngineOptions
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.engine.capacity import free_memory_bytes, kv_token_bytes
from ninfer.errors import CapacityError, ModelFileError, OptionError
from ninfer.weights.open_model import open_model


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
        ("context_cache", 1),
        ("context_cache", None),
        ("device_state_slots", -1),
        ("device_state_slots", "auto"),
        ("host_cache_mib", -1),
        ("host_cache_mib", None),
        ("max_private_continuations", 0),
        ("max_private_continuations", 3),
        ("max_shared_prefixes", -1),
        ("max_long_anchors_per_continuation", -1),
        ("auto_long_anchors", -1),
        ("auto_prefix_grid", "yes"),
        ("endpoint_anchors", 0),
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


def test_a_host_tier_that_memory_cannot_hold_is_refused_with_both_numbers() -> None:
    with pytest.raises(CapacityError, match=r"host_cache_mib needs 17592186044416 bytes, \d+ are free"):
        ninfer.load(HYBRID_DIRECTORY, host_cache_mib=1 << 24)


def test_the_cache_gets_what_was_asked_for() -> None:
    sizes = {"device_state_slots": 3, "host_cache_mib": 2}
    with ninfer.load(HYBRID_DIRECTORY, max_context=64, **sizes) as engine:
        found = engine.model.program.statistics()
        assert (found.capacity.image_slots_active, found.capacity.image_slots_checkpoint) == (4, 3)
        assert found.capacity.host_blocks == (2 << 20) // found.host_block_bytes
    with ninfer.load(HYBRID_DIRECTORY, max_context=64, **sizes, context_cache=False) as engine:
        found = engine.model.program.statistics()
        assert (found.capacity.image_slots_checkpoint, found.capacity.host_blocks) == (0, 0)


def test_an_automatic_host_tier_is_a_part_of_what_is_free() -> None:
    with ninfer.load(HYBRID_DIRECTORY, max_context=64) as engine:
        assert 0 < engine.model.capacity.host_bytes <= min(8192 << 20, free_memory_bytes())


def test_an_automatic_host_tier_gives_way_to_pages_that_were_asked_for() -> None:
    token_bytes = kv_token_bytes(open_model(HYBRID_DIRECTORY).config, "bf16")
    most = free_memory_bytes() * 9 // 10
    with ninfer.load(HYBRID_DIRECTORY, kv_capacity=most // token_bytes) as engine:
        assert engine.model.capacity.host_bytes <= free_memory_bytes() // 8


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
    assert (options.context_cache, options.device_state_slots, options.host_cache_mib) == (True, 8, "auto")
    assert (options.max_private_continuations, options.max_shared_prefixes) == (256, 256)
    assert (options.max_long_anchors_per_continuation, options.auto_long_anchors) == (8, 8)
    assert (options.auto_prefix_grid, options.endpoint_anchors) == (False, True)
