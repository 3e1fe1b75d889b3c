"""Checkpoints at the native door: wrong arguments are errors, stale handles are refusals, summaries are true."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest

import ninfer
from ninfer import native
from ninfer.demo import HYBRID_DIRECTORY
from ninfer.errors import CapacityError

PROMPT = np.arange(5, 75, dtype=np.int32)


def options(**fields: object) -> native.ProgramOptions:
    result = native.ProgramOptions()
    sizes = {
        "cpu_isa": native.supported_cpu_isas()[-1],
        "threads": 1,
        "kv_pages": 8,
        "max_context": 256,
        "max_concurrency": 2,
        "max_unit_rows": 128,
        "valid_tokens": 1000,
        "checkpoint_slots": 2,
        "host_bytes": 1 << 24,
    }
    for name, value in (sizes | fields).items():
        setattr(result, name, value)
    return result


@pytest.fixture
def program(model: native.ModelSource) -> Iterator[native.Program]:
    one = native.Program(model, "bf16", options())
    yield one
    one.check_invariants()


@pytest.fixture
def endpoint(program: native.Program) -> int:
    sequence = native.must(program.open_sequence(128, captures=1))
    native.must(program.append(sequence, PROMPT))
    native.must(program.abort(native.must(program.finish_prefill(sequence, native.Sampler()))))
    owner = native.must(program.finish(sequence))
    return native.must(program.owner(owner)).checkpoints[0]


@pytest.mark.parametrize(
    "call",
    [
        lambda program, endpoint: program.open_sequence(10, captures=-1),
        lambda program, endpoint: program.open_from(endpoint, -1),
        lambda program, endpoint: program.open_from(endpoint, 128, frontier=-1),
        lambda program, endpoint: program.start_copy(endpoint, "disk"),
        lambda program, endpoint: program.drop(endpoint, ""),
        lambda program, endpoint: program.capture(1, kind="anchor"),
        lambda program, endpoint: program.capture(1, tier="Host"),
        lambda program, endpoint: program.finish(1, kind=""),
        lambda program, endpoint: program.poll_copies(-1),
        lambda program, endpoint: native.StateProbe(program, 7),
        lambda program, endpoint: native.CheckpointProbe(program, 7),
    ],
)
def test_wrong_arguments_are_value_errors(
    program: native.Program, endpoint: int, call: Callable[[native.Program, int], object]
) -> None:
    before = program.fingerprint()
    with pytest.raises(ValueError, match=r"must be|no such"):
        call(program, endpoint)
    assert program.fingerprint() == before


@pytest.mark.parametrize(
    "call",
    [
        lambda program, stale: program.checkpoint(stale),
        lambda program, stale: program.owner(stale),
        lambda program, stale: program.open_from(stale, 128),
        lambda program, stale: program.start_copy(stale, "host"),
        lambda program, stale: program.cancel_copies(stale),
        lambda program, stale: program.drop(stale, "host"),
        lambda program, stale: program.delete_checkpoint(stale),
        lambda program, stale: program.release_owner(stale),
        lambda program, stale: program.verify(native.PreparedPrompt(PROMPT), [stale]),
        lambda program, stale: program.capture(stale),
        lambda program, stale: program.capture_shape(stale),
        lambda program, stale: program.finish(stale),
    ],
)
@pytest.mark.parametrize("stale", [0, 1, 1 << 32 | 77, 2**64 - 1])
def test_stale_handles_are_refusals(
    program: native.Program, endpoint: int, call: Callable[[native.Program, int], object], stale: int
) -> None:
    before = program.fingerprint()
    refusal = call(program, stale)
    assert isinstance(refusal, native.Refusal)
    assert refusal.kind == "stale_handle"
    assert program.fingerprint() == before


def test_a_checkpoint_is_what_its_summary_says(program: native.Program, endpoint: int) -> None:
    summary = native.must(program.checkpoint(endpoint))
    assert (summary.kind, summary.frontier, summary.pages) == ("session_endpoint", 70, 2)
    assert (summary.pages_on_device, summary.pages_on_host, summary.pages_exclusive) == (2, 0, 2)
    assert summary.has_image and summary.image_on_device and not summary.image_on_host
    assert summary.valid and summary.device_ready
    owner = native.must(program.owner(summary.owner))
    assert (owner.role, owner.checkpoints) == ("private", [endpoint])
    assert native.must(program.verify(native.PreparedPrompt(PROMPT), [endpoint])) == [70]
    assert native.must(program.verify(native.PreparedPrompt(PROMPT[:30]), [endpoint])) == [30]
    assert native.must(program.verify(native.PreparedPrompt(PROMPT, salt="another"), [endpoint])) == [0]
    probe = native.CheckpointProbe(program, endpoint)
    assert len(probe.device_pages()) == 2
    assert probe.page(0).nbytes == program.statistics().page_bytes
    with pytest.raises(IndexError):
        probe.page(2)


def test_the_used_vector_counts_every_axis(program: native.Program, endpoint: int) -> None:
    used, capacity = program.statistics().used, program.statistics().capacity
    assert (used.device_pages, used.device_pages_reserved, used.host_blocks) == (2, 0, 0)
    assert (used.image_slots_active, used.image_slots_checkpoint) == (0, 1)
    assert (capacity.device_pages, capacity.image_slots_active, capacity.image_slots_checkpoint) == (8, 2, 2)
    moved = native.must(program.start_copy(endpoint, "host"))
    assert moved == 2 * program.statistics().page_bytes + program.statistics().state_image_bytes
    while program.poll_copies().open:
        pass
    statistics = program.statistics()
    assert statistics.used.host_blocks * statistics.host_block_bytes >= moved
    assert (statistics.owners, statistics.checkpoints, statistics.copies_open) == (1, 1, 0)
    native.must(program.delete_checkpoint(endpoint))
    assert program.statistics().used.host_blocks == 0


def test_a_host_tier_that_cannot_be_numbered_is_refused(model: native.ModelSource) -> None:
    with pytest.raises(CapacityError):
        native.Program(model, "bf16", options(host_bytes=2**63 - 1))


def test_the_engine_keeps_no_checkpoints() -> None:
    """Its Host tier and checkpoint slots are for a service on the same model: reserved, and never touched."""
    with ninfer.load(HYBRID_DIRECTORY, max_context=256, kv_capacity=1024) as engine:
        engine.logits([5, 6, 7])
        statistics = engine.model.program.statistics()
        used = statistics.used
        assert (statistics.owners, statistics.checkpoints, statistics.lanes_open) == (0, 0, 0)
        assert (used.device_pages, used.image_slots_checkpoint, used.host_blocks) == (0, 0, 0)


def test_a_handle_of_another_kind_is_stale(program: native.Program, endpoint: int) -> None:
    owner = program.checkpoint(endpoint).owner
    sequence = native.must(program.open_sequence(10))
    before = program.fingerprint()
    calls: list[Callable[[], object]] = [
        *(lambda wrong=wrong: program.checkpoint(wrong) for wrong in (owner, sequence)),
        *(lambda wrong=wrong: program.owner(wrong) for wrong in (endpoint, sequence)),
        *(lambda wrong=wrong: program.sequence(wrong) for wrong in (endpoint, owner)),
        lambda: program.delete_checkpoint(owner),
        lambda: program.release_owner(endpoint),
        lambda: program.close_sequence(owner),
    ]
    for call in calls:
        refusal = call()
        assert isinstance(refusal, native.Refusal)
        assert refusal.kind == "stale_handle"
    assert program.fingerprint() == before


def test_the_rope_delta_is_part_of_an_identity(program: native.Program, endpoint: int) -> None:
    assert native.must(program.verify(native.PreparedPrompt(PROMPT), [endpoint])) == [len(PROMPT)]
    assert native.must(program.verify(native.PreparedPrompt(PROMPT, rope_delta=3), [endpoint])) == [0]
    refusal = program.open_from(endpoint, 128, rope_delta=3)
    assert isinstance(refusal, native.Refusal)
    assert refusal.kind == "mismatch"
    moved = native.must(program.open_sequence(128, rope_delta=3))
    native.must(program.append(moved, PROMPT))
    native.must(program.abort(native.must(program.finish_prefill(moved, native.Sampler()))))
    (other,) = program.owner(native.must(program.finish(moved))).checkpoints
    assert native.must(program.verify(native.PreparedPrompt(PROMPT, rope_delta=3), [endpoint, other])) == [
        0,
        len(PROMPT),
    ]


def test_rewrite_frontiers_ascend_within_the_ledger(program: native.Program) -> None:
    sequence = native.must(program.open_sequence(128))
    native.must(program.append(sequence, PROMPT))
    native.must(program.record_rewrite_frontier(sequence, 20))
    for frontier, kind in ((19, "backwards"), (len(PROMPT) + 1, "beyond_frontier")):
        refusal = program.record_rewrite_frontier(sequence, frontier)
        assert isinstance(refusal, native.Refusal)
        assert refusal.kind == kind
    with pytest.raises(ValueError, match="must be"):
        program.record_rewrite_frontier(sequence, -1)


def test_nothing_is_condemned_that_nobody_pins(program: native.Program, endpoint: int) -> None:
    assert program.statistics().condemned == 0
    native.must(program.delete_checkpoint(endpoint))
    assert program.statistics().condemned == 0


def test_a_checkpoint_has_the_digests_of_its_tokens(program: native.Program, endpoint: int) -> None:
    frontiers = np.array([70, 0, 64, 33], np.int64)
    digests = native.must(program.checkpoint_digests(endpoint, frontiers))
    assert digests.tolist() == native.PreparedPrompt(PROMPT).digests(frontiers).tolist()
    for frontier in (-1, 71):
        refusal = program.checkpoint_digests(endpoint, np.array([frontier], np.int64))
        assert isinstance(refusal, native.Refusal)
        assert (refusal.kind, refusal.wanted, refusal.found) == ("beyond_frontier", frontier, 70)


def test_a_prompt_is_appended_where_the_sequence_stands(program: native.Program, endpoint: int) -> None:
    prompt = native.PreparedPrompt(PROMPT)
    sequence = native.must(program.open_from(endpoint, 128))
    native.must(program.append_prompt(sequence, prompt))
    assert native.must(program.sequence(sequence)).tokens == len(PROMPT)
    native.must(program.append_prompt(sequence, prompt))
    assert native.must(program.sequence(sequence)).tokens == len(PROMPT)
    before = program.fingerprint()
    for wrong, kind in (
        (native.PreparedPrompt(PROMPT[:30]), "beyond_frontier"),
        (native.PreparedPrompt(PROMPT, salt="s"), "mismatch"),
    ):
        refusal = program.append_prompt(sequence, wrong)
        assert isinstance(refusal, native.Refusal)
        assert refusal.kind == kind
    assert program.fingerprint() == before


Axes = tuple[int, int, int]
Span = tuple[int, int, Axes, Axes, tuple[int, int, int] | None]

TEXT: Span = (0, 0, (0, 0, 0), (1, 1, 1), None)


def test_spans_are_part_of_an_identity(program: native.Program, endpoint: int) -> None:
    assert native.must(program.verify(native.PreparedPrompt(PROMPT, spans=[TEXT]), [endpoint])) == [len(PROMPT)]
    # From token 40 on: another type, another position on one axis, a picture.
    others: list[Span] = [
        (40, 3, (40, 40, 40), (1, 1, 1), None),
        (40, 0, (40, 41, 40), (1, 1, 1), None),
        (40, 0, (40, 40, 40), (1, 1, 1), (7, 8, 0)),
    ]
    for other in others:
        prompt = native.PreparedPrompt(PROMPT, spans=[TEXT, other])
        assert native.must(program.verify(prompt, [endpoint])) == [40]
        frontiers = np.array([40, 41], np.int64)
        same = prompt.matches(frontiers, native.must(program.checkpoint_digests(endpoint, frontiers)))
        assert same.tolist() == [True, False]


def test_what_no_model_computes_is_refused(program: native.Program) -> None:
    sequence = native.must(program.open_sequence(128))
    native.must(program.append_prompt(sequence, native.PreparedPrompt(PROMPT[:30], spans=[TEXT])))
    before = program.fingerprint()
    cases: list[tuple[Span, int]] = [
        ((50, 3, (50, 50, 50), (1, 1, 1), None), 3),
        ((50, 0, (50, 50, 49), (1, 1, 1), None), 0),
        ((50, 0, (50, 50, 50), (1, 1, 1), (7, 8, 0)), 0),
        ((49, 0, (49, 49, 49), (1, 1, 0), None), 0),
    ]
    for other, found in cases:
        refusal = program.append_prompt(sequence, native.PreparedPrompt(PROMPT, spans=[TEXT, other]))
        assert isinstance(refusal, native.Refusal)
        assert (refusal.kind, refusal.wanted, refusal.found) == ("not_text", 50, found)
    assert program.fingerprint() == before
    native.must(program.append_prompt(sequence, native.PreparedPrompt(PROMPT, spans=[TEXT])))
    native.must(program.abort(native.must(program.finish_prefill(sequence, native.Sampler()))))
    (checkpoint,) = native.must(program.owner(native.must(program.finish(sequence)))).checkpoints
    assert native.must(program.verify(native.PreparedPrompt(PROMPT), [checkpoint])) == [len(PROMPT)]


@pytest.mark.parametrize("begins", [[1], [0, 0], [0, 2, 1], [0, len(PROMPT)]])
def test_spans_that_do_not_cover_the_prompt_in_order_are_refused(begins: list[int]) -> None:
    with pytest.raises(ValueError, match="span"):
        native.PreparedPrompt(PROMPT, spans=[(begin, 0, (0, 0, 0), (1, 1, 1), None) for begin in begins])
