"""One conversation as an engine serves it, through the native door: candidates, a session, all identities at a glance,
steps down under pressure, a sealed plan, copies polled between phases, a capture, an endpoint, a cancellation."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer import native
from tests.python.native.test_checkpoint_bindings import options
from tests.python.native.test_planning_bindings import TOKENS, endpoint, finished, sampled_after

COLUMNS = native.TargetAssessment.columns()
FEASIBLE = {native.TargetAssessment.statuses().index(name) for name in ("ready", "needs_transfer")}


@pytest.fixture
def program(model: native.ModelSource) -> Iterator[native.Program]:
    one = native.Program(model, "bf16", options(checkpoint_slots=2))
    yield one
    one.check_invariants()


def fact(row: NDArray[np.int64], name: str) -> int:
    return int(row[COLUMNS.index(name)])


def lacking(row: NDArray[np.int64]) -> int:
    return sum(fact(row, f"residual_{axis}") for axis in ("device_pages", "image_slots_checkpoint", "host_blocks"))


def chosen(session: native.PlanningSession, publications: list[native.Publication]) -> int:
    """The deepest option's target: as it is if that fits, else down the steps that leave least lacking."""
    native.must(session.open(publications, []))
    there = [index for index in range(len(publications)) if session.why_left_out(index) is None]
    targets = [native.must(session.identity(index)) for index in there]
    rows, recoveries = native.must(session.assess_many(targets))
    assert len(recoveries) == 0  # nothing differs from an identity there
    best = max(range(len(rows)), key=lambda i: fact(rows[i], "reused_tokens"))
    target, row = targets[best], rows[best]
    while fact(row, "status") not in FEASIBLE:
        targets = native.must(session.successors(target))
        assert len(targets) == len(native.must(session.degradations(target)))
        rows, recoveries = native.must(session.assess_many(targets))
        assert len(recoveries) > 0
        best = min(range(len(rows)), key=lambda i: lacking(rows[i]))
        target, row = targets[best], rows[best]
    return target


def admissions(program: native.Program, prompt: NDArray[np.int32], source: int, use: str) -> list[native.Publication]:
    prepared = native.PreparedPrompt(prompt)
    found = native.must(program.candidates(prepared, [(source, use)]))
    assert [one.is_root for one in found] == [True, False]
    return [native.Publication.admission(one, prepared, 256, captures=1) for one in found]


def to_host(program: native.Program, checkpoint: int) -> None:
    native.must(program.start_copy(checkpoint, "host"))
    while program.poll_copies().open:
        pass
    native.must(program.drop(checkpoint, "device"))


@pytest.fixture
def crowd(program: native.Program) -> tuple[int, list[int]]:
    """A demoted conversation of 70 tokens, and two others that fill the checkpoint slots and four of eight pages."""
    source = endpoint(program, TOKENS[:70])
    to_host(program, source)
    return source, [endpoint(program, TOKENS + shift) for shift in (1, 2)]


def test_a_turn_is_admitted_captured_and_kept_under_pressure(
    program: native.Program, session: native.PlanningSession, crowd: tuple[int, list[int]]
) -> None:
    source, others = crowd
    result = finished(
        program, native.must(session.seal(chosen(session, admissions(program, TOKENS, source, "retain"))))
    )
    assert result.end == "committed"
    assert result.sequence is not None
    touched = {placement[0] for placement in result.placements} | set(result.removed)
    assert touched & set(others)  # somebody had to make room
    assert native.must(program.checkpoint(source)).valid
    logits = sampled_after(program, result.sequence, TOKENS[70:])

    publications = [native.Publication.capture(result.sequence, tier=tier) for tier in ("device", "host")]
    captured = finished(program, native.must(session.seal(chosen(session, publications[:1]))))
    assert captured.captured is not None
    assert native.must(program.checkpoint(captured.captured)).frontier == 100
    while program.poll_copies().open:
        pass
    native.must(program.append(result.sequence, TOKENS[:20]))
    native.must(program.abort(native.must(program.finish_prefill(result.sequence, native.Sampler()))))
    kept = finished(program, native.must(session.seal(chosen(session, [native.Publication.finish(result.sequence)]))))
    assert kept.finished is not None
    checkpoints = native.must(program.owner(kept.finished)).checkpoints
    assert [native.must(program.checkpoint(one)).frontier for one in checkpoints] == [100, 120]

    for checkpoint in [*checkpoints, source, *others]:
        if isinstance(program.checkpoint(checkpoint), native.CheckpointSummary):
            native.must(program.delete_checkpoint(checkpoint))
    cold = native.must(program.open_sequence(100))
    assert sampled_after(program, cold, TOKENS) == logits


@pytest.mark.parametrize("use", ["retain", "consume"])
def test_a_cancelled_turn_leaves_its_source_and_says_what_it_has_cost(
    program: native.Program, session: native.PlanningSession, crowd: tuple[int, list[int]], use: str
) -> None:
    source, others = crowd
    evicted = native.must(program.checkpoint(others[0])).owner
    revision = program.resource_revision
    for phase in ("host_releases", "copy_preparation", "copies_in_flight"):
        native.must(session.open(admissions(program, TOKENS, source, use), []))
        evictions = [native.Degradation("pages_to_host", checkpoint=others[1])]
        if isinstance(program.owner(evicted), native.OwnerSummary):
            evictions.append(native.Degradation("evict", owner=evicted))
        target = native.must(session.degrade(native.must(session.identity(1)), evictions))
        assert native.must(program.start_transaction(native.must(session.seal(target)), [])) is None
        while program.transaction_phase != phase:
            assert native.must(program.advance_transaction()) is None
        assert isinstance(program.open_sequence(1), native.Refusal)  # nothing else begins meanwhile
        assert program.cancel_transaction()
        result = None
        while result is None:
            result = native.must(program.advance_transaction())
            if program.transaction_waits:
                program.poll_copies()
        assert program.transaction_phase is None
        assert (result.end, result.sequence) == ("cancelled", None)
        # Before its releases it has cost nothing; once they have happened, they stay.
        assert result.removed == ([others[0]] if phase == "copy_preparation" else [])
        assert result.changed == (phase == "copy_preparation")
        revision += result.changed
        assert result.revision == program.resource_revision == revision
    assert native.must(program.checkpoint(source)).valid
    assert native.must(program.checkpoint(others[1])).valid

    again = finished(program, native.must(session.seal(chosen(session, admissions(program, TOKENS, source, use)))))
    assert again.sequence is not None
    native.must(program.close_sequence(again.sequence))


def test_who_is_protected_since_the_plan_was_sealed_is_named(
    program: native.Program, session: native.PlanningSession, crowd: tuple[int, list[int]]
) -> None:
    _, others = crowd
    owner = native.must(program.checkpoint(others[0])).owner
    native.must(session.open([native.Publication.nothing()], []))
    eviction = native.Degradation("evict", owner=owner)
    target = native.must(session.degrade(native.must(session.identity(0)), [eviction]))
    before = program.fingerprint()
    refused = program.start_transaction(native.must(session.seal(target)), [owner])
    assert isinstance(refused, native.Refusal)
    assert (refused.kind, refused.wanted, refused.found) == ("protected", owner, others[0])
    assert program.fingerprint() == before
    result = native.must(program.start_transaction(native.must(session.seal(target)), []))
    assert result is not None and result.owners_gone == [owner]


def test_a_candidate_whose_copy_is_on_its_way_does_not_hold_up_the_others(
    program: native.Program, session: native.PlanningSession
) -> None:
    sequence = native.must(program.open_sequence(128, captures=1))
    sampled_after(program, sequence, TOKENS[:70])
    anchor = native.must(program.capture(sequence))
    while program.poll_copies().open:
        pass
    sampled_after(program, sequence, TOKENS[70:90])
    native.must(program.finish(sequence, tier="host"))
    publications = admissions(program, TOKENS, anchor, "consume")
    native.must(session.open(publications, []))
    assert session.why_left_out(0) is None
    refusal = session.why_left_out(1)
    assert refusal is not None
    assert refusal.kind == "copy_in_flight"
    assert isinstance(session.identity(1), native.Refusal)
    assert native.must(session.assess(native.must(session.identity(0)))).refusal is not None  # until it has ended
    with pytest.raises(ValueError, match="no such option"):
        session.why_left_out(2)
    assert isinstance(session.open(publications[1:], []), native.Refusal)
    while program.poll_copies().open:
        pass
    native.must(session.open(publications, []))
    assert session.why_left_out(1) is None
