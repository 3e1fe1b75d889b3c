"""Wrong arguments at the native door are errors, never crashes and never silently converted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import ninfer
from ninfer import native
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import ModelFileError

PROMPT = np.array([5, 6, 7, 8], np.int32)


@pytest.fixture(scope="module")
def program() -> Iterator[native.Program]:
    with ninfer.load(HYBRID_DIRECTORY, max_context=256, kv_capacity=1024, prefill_chunk=16) as engine:
        yield engine.model.program


@pytest.fixture
def sequence(program: native.Program) -> Iterator[int]:
    handle = native.must(program.open_sequence(64))
    native.must(program.append(handle, PROMPT))
    yield handle
    program.abort_pending()
    native.must(program.close_sequence(handle))


def sampler(**fields: object) -> native.Sampler:
    result = native.Sampler()
    for name, value in fields.items():
        setattr(result, name, value)
    return result


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": float("nan")},
        {"temperature": -1.0},
        {"temperature": float("inf")},
        {"min_p": 1.5},
        {"logprobs": 21},
        {"logprobs": -2},
        {"repetition_penalty": 0.0},
        {"presence_penalty": float("nan")},
        {"presence_penalty": 0.5},
        {"frequency_penalty": 0.5},
        {"repetition_penalty": 1.5},
    ],
    ids=str,
)
def test_a_sampler_out_of_range_is_a_value_error(
    program: native.Program, sequence: int, fields: dict[str, object]
) -> None:
    with pytest.raises(ValueError, match=r"must|need"):
        program.finish_prefill(sequence, sampler(**fields))
    assert native.must(program.sequence(sequence)).computed == 0


def test_masks_and_biases_of_another_vocabulary_are_value_errors(program: native.Program, sequence: int) -> None:
    short = native.Sampler()
    short.set_mask(np.ones(1, np.uint32))
    padded = native.Sampler()
    padded.set_bias([(program.valid_tokens, 1.0)])
    negative = native.Sampler()
    negative.set_bias([(-1, 1.0)])
    for wrong in (short, padded, negative):
        with pytest.raises(ValueError, match=r"mask|biased"):
            program.finish_prefill(sequence, wrong)


def test_rows_without_a_sampler_are_refused(program: native.Program, sequence: int) -> None:
    with pytest.raises((TypeError, ValueError)):
        program.decode([(sequence, None)])  # type: ignore[list-item]  # on purpose


@pytest.mark.parametrize("columns", [-1, 1])
def test_logits_of_another_width_are_a_value_error(program: native.Program, sequence: int, columns: int) -> None:
    with pytest.raises(ValueError, match="one column per id"):
        program.prefill_logits(sequence, np.empty((4, program.vocab_size + columns), np.float32))


@pytest.mark.parametrize("tokens", [np.array([2**32 + 5]), np.array([1.5]), [5], np.zeros((2, 2), np.int32)], ids=repr)
def test_tokens_are_never_converted(program: native.Program, sequence: int, tokens: object) -> None:
    with pytest.raises(TypeError):
        program.append(sequence, tokens)  # type: ignore[arg-type]  # on purpose
    assert native.must(program.sequence(sequence)).tokens == len(PROMPT)


def test_refusals_are_values_with_both_numbers(program: native.Program) -> None:
    refusal = program.open_sequence(257)
    assert isinstance(refusal, native.Refusal)
    assert (refusal.kind, refusal.wanted, refusal.found) == ("over_context", 257, 256)
    assert str(refusal) == "over_context: wanted 257, found 256"
    with pytest.raises(ValueError, match="at least 0"):
        program.open_sequence(-1)


def test_a_batch_belongs_to_its_program_and_ends_once(program: native.Program, sequence: int) -> None:
    with ninfer.load(HYBRID_DIRECTORY, max_context=64, kv_capacity=256) as engine:
        other = engine.model.program
        handle = native.must(other.open_sequence(16))
        native.must(other.append(handle, PROMPT))
        foreign = native.must(other.finish_prefill(handle, native.Sampler()))
        batch = native.must(program.finish_prefill(sequence, native.Sampler()))
        for refusal in (program.commit(foreign, [1]), program.abort(foreign)):
            assert isinstance(refusal, native.Refusal) and refusal.kind == "no_pending_batch"
        native.must(program.commit(batch, [1]))
        again = program.commit(batch, [1])
        assert isinstance(again, native.Refusal) and again.kind == "no_pending_batch"
        assert native.must(program.sequence(sequence)).tokens == len(PROMPT) + 1


def test_a_batch_outlives_its_program() -> None:
    engine = ninfer.load(HYBRID_DIRECTORY, max_context=64, kv_capacity=256)
    handle = native.must(engine.model.program.open_sequence(16))
    native.must(engine.model.program.append(handle, PROMPT))
    batch = native.must(engine.model.program.finish_prefill(handle, native.Sampler()))
    engine.close()
    del engine
    assert batch.tokens[0].id >= 0


def test_last_logits_are_those_that_were_sampled(program: native.Program, sequence: int) -> None:
    batch = native.must(program.finish_prefill(sequence, native.Sampler()))
    logits = program.last_logits(0)
    assert len(logits) == program.vocab_size
    assert batch.tokens[0].id == int(np.argmax(logits[: program.valid_tokens]))
    for row in (-1, 4):
        with pytest.raises(ValueError, match="no such row"):
            program.last_logits(row)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("threads", 0),
        ("max_concurrency", 0),
        ("max_concurrency", 9),
        ("max_unit_rows", 0),
        ("max_context", -1),
        ("kv_pages", -1),
        ("kv_pages", 2**31),
        ("valid_tokens", 0),
        ("valid_tokens", 10**6),
        ("checkpoint_slots", -1),
        ("checkpoint_slots", 2**31),
        ("host_bytes", -1),
        ("cpu_isa", "mmx"),
    ],
)
def test_impossible_sizes_are_value_errors(tiny_model: native.ModelSource, field: str, value: object) -> None:
    with pytest.raises(ValueError, match=r"must be|unsupported"):
        native.Program(tiny_model, "f32", program_options(**{field: value}))


def test_impossible_names_are_value_errors(tiny_model: native.ModelSource) -> None:
    with pytest.raises(ValueError, match="unknown name: fp8"):
        native.Program(tiny_model, "fp8", program_options())
    with pytest.raises(ValueError, match="unknown name: q5"):
        native.MatrixTarget("x", 1, 1, "q5")


@pytest.mark.parametrize(
    "make",
    [
        lambda: native.WeightLoader(0),
        lambda: native.MatrixTarget("x", 0, 4, "f32"),
        lambda: native.MatrixTarget("x", 4, -1, "f32"),
    ],
)
def test_empty_things_are_value_errors(make: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="at least"):
        make()


def test_missing_and_short_files_are_model_file_errors(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match="absent"):
        native.MappedFile(str(tmp_path / "absent"))
    short = tmp_path / "short"
    short.write_bytes(b"1234")
    loader = native.WeightLoader(1)
    with pytest.raises(ModelFileError) as caught:
        loader.add_matrix_from_file(native.MatrixTarget("w", 2, 2, "f32"), native.MappedFile(str(short)), 0, 16, "F32")
    assert (caught.value.file, caught.value.key) == (str(short), "w")


def test_a_matrix_that_cannot_be_stored_leaves_nothing_and_can_be_tried_again() -> None:
    loader = native.WeightLoader(1)
    target = native.MatrixTarget("w", 2, 2, "f32")
    bad = np.array([1, 2, np.nan, 4], np.float32).view(np.uint8)
    with pytest.raises(ModelFileError, match="finite"):
        loader.add_matrix_from_bytes(target, bad, "F32", "file")
    assert loader.packed_bytes == 0
    loader.add_matrix_from_bytes(target, np.ones(4, np.float32).view(np.uint8), "F32", "file")
    assert loader.packed_bytes > 0


@pytest.fixture(scope="module")
def tiny_model() -> native.ModelSource:
    from ninfer.engine.native_model import load_native_model
    from ninfer.weights.open_model import open_model

    return load_native_model(open_model(HYBRID_DIRECTORY), "auto", 1)


def program_options(**changed: object) -> native.ProgramOptions:
    options = native.ProgramOptions()
    fields = {
        "cpu_isa": "scalar",
        "threads": 1,
        "kv_pages": 2,
        "max_context": 64,
        "max_concurrency": 1,
        "max_unit_rows": 8,
        "valid_tokens": 100,
    }
    for name, value in (fields | changed).items():
        setattr(options, name, value)
    return options
