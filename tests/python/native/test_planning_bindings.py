"""Planning at the native door: targets, tables of facts, plans and results, with a model that goes on after them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from numpy.typing import NDArray

from ninfer import native
from tests.python.native.test_checkpoint_bindings import options

TOKENS = np.arange(5, 105, dtype=np.int32)


@pytest.fixture
def program(model: native.ModelSource) -> Iterator[native.Program]:
    one = native.Program(model, "bf16", options(checkpoint_slots=3))
    yield one
    one.check_invariants()


def sampled_after(program: native.Program, sequence: int, tokens: NDArray[np.int32]) -> list[float]:
    native.must(program.append(sequence, tokens))
    native.must(program.abort(native.must(program.finish_prefill(sequence, native.Sampler()))))
    return program.last_logits(0)


def endpoint(program: native.Program, tokens: NDArray[np.int32]) -> int:
    sequence = native.must(program.open_sequence(len(tokens)))
    sampled_after(program, sequence, tokens)
    owner = native.must(program.finish(sequence))
    return native.must(program.owner(owner)).checkpoints[0]


def root(program: native.Program, tokens: int) -> native.Publication:
    prompt = np.full(tokens, 7, dtype=np.int32)
    prepared = native.PreparedPrompt(prompt)
    return native.Publication.admission(native.must(program.candidates(prepared, []))[0], prepared, tokens)


def finished(program: native.Program, plan: native.ContextPlan) -> native.ResourceResult:
    ended = native.must(program.start_transaction(plan, []))
    while ended is None:
        program.poll_copies()
        ended = native.must(program.advance_transaction())
    return ended


def column(rows: NDArray[np.int64], names: list[str], name: str) -> list[int]:
    return [int(value) for value in rows[:, names.index(name)]]


@pytest.mark.parametrize("use", ["retain", "consume", "continue"])
def test_a_planned_admission_goes_on_like_a_cold_start(
    program: native.Program, session: native.PlanningSession, use: str
) -> None:
    cold = native.must(program.open_sequence(len(TOKENS)))
    expected = sampled_after(program, cold, TOKENS)
    native.must(program.close_sequence(cold))
    checkpoint = endpoint(program, TOKENS[:70])
    prompt = native.PreparedPrompt(TOKENS)
    found = native.must(program.candidates(prompt, [(checkpoint, use)]))
    assert [candidate.frontier for candidate in found] == [0, 70]
    assert found[0].is_root
    assert (found[1].checkpoint, found[1].use, found[1].prompt_tokens) == (checkpoint, use, 100)
    native.must(session.open([native.Publication.admission(one, prompt, 128) for one in found], []))
    target = native.must(session.identity(1))
    assessment = native.must(session.assess(target))
    assert assessment.feasible
    assert assessment.status == ("ready" if use == "consume" else "needs_transfer")  # the tail is copied
    result = finished(program, native.must(session.seal(target)))
    assert (result.end, result.removed) == ("committed", [checkpoint] if use == "consume" else [])
    assert result.sequence is not None
    native.must(program.append_prompt(result.sequence, prompt))
    native.must(program.abort(native.must(program.finish_prefill(result.sequence, native.Sampler()))))
    assert program.last_logits(0) == expected
    native.must(program.close_sequence(result.sequence))


def test_pressure_is_chosen_from_tables(program: native.Program, session: native.PlanningSession) -> None:
    checkpoints = [endpoint(program, TOKENS + shift) for shift in range(3)]  # 6 of 8 pages
    native.must(session.open([root(program, 200)], []))
    identity = native.must(session.identity(0))
    refused = native.must(session.assess(identity)).refusal
    assert refused is not None
    assert (refused.kind, refused.wanted, refused.found) == ("no_pages", 10, 8)
    assert isinstance(session.seal(identity), native.Refusal)

    steps = native.must(session.degradations(identity))
    assert (session.max_targets, session.max_options) == (256, 33)
    names = session.degradation_columns()
    kinds = [native.Degradation.kinds()[kind] for kind in column(steps, names, "kind")]
    assert set(kinds) == {"pages_to_host", "evict"}
    evictions = [row for row, kind in zip(steps, kinds, strict=True) if kind == "evict"]
    owners = [int(row[names.index("owner")]) for row in evictions]
    assert len(owners) == 3
    evicted = native.must(session.degrade(identity, [native.Degradation("evict", owner=owners[0])]))
    demoted = native.must(session.degrade(identity, [native.Degradation("pages_to_host", checkpoint=checkpoints[1])]))
    assessments, recoveries = native.must(session.assess_many([identity, evicted, demoted]))
    columns = native.TargetAssessment.columns()
    assert assessments.shape == (3, len(columns))
    statuses = [native.TargetAssessment.statuses()[status] for status in column(assessments, columns, "status")]
    assert statuses == ["temporarily_blocked", "ready", "needs_transfer"]
    assert column(assessments, columns, "owners_evicted") == [0, 1, 0]
    assert column(assessments, columns, "residual_device_pages") == [2, 0, 0]
    names = session.recovery_columns()
    rows = list(
        zip(*(column(recoveries, names, name) for name in ("target", "checkpoint", "base_frontier")), strict=True)
    )
    assert rows == [(1, checkpoints[0], 0), (2, checkpoints[1], 100), (2, checkpoints[1], 0)]
    assert native.must(session.baseline(0)).shape == (3, len(names))

    result = finished(program, native.must(session.seal(demoted)))
    assert (result.removed, result.owners_gone) == ([], [])
    assert result.placements == [(checkpoints[1], 2, 0, 2, True, False)]
    assert result.revision == program.resource_revision
    assert isinstance(session.identity(0), native.Refusal)  # of another revision


def test_captures_finishes_and_releases(program: native.Program, session: native.PlanningSession) -> None:
    sequence = native.must(program.open_sequence(128, captures=1))
    sampled_after(program, sequence, TOKENS)
    for publication in (native.Publication.capture(sequence), native.Publication.finish(sequence)):
        native.must(session.open([publication], []))
        result = finished(program, native.must(session.seal(native.must(session.identity(0)))))
        assert result.skipped is None
        used = program.statistics().used
        assert result.used.device_pages == used.device_pages + used.device_pages_reserved
        assert (result.used.image_slots_active, result.used.image_slots_checkpoint, result.used.host_blocks) == (
            used.image_slots_active,
            used.image_slots_checkpoint,
            used.host_blocks,
        )
        assert result.peak.device_pages >= result.used.device_pages
        program.poll_copies()
    assert result.finished is not None
    kept = native.must(program.owner(result.finished)).checkpoints
    assert len(kept) == 2
    native.must(session.open([native.Publication.nothing()], []))
    step = native.Degradation("delete", checkpoint=kept[0])
    target = native.must(session.degrade(native.must(session.identity(0)), [step]))
    assert finished(program, native.must(session.seal(target))).removed == [kept[0]]


def test_a_plan_is_used_up_and_names_are_checked(program: native.Program, session: native.PlanningSession) -> None:
    native.must(session.open([root(program, 64)], []))
    plan = native.must(session.seal(native.must(session.identity(0))))
    result = finished(program, plan)
    with pytest.raises(ValueError, match="used up"):
        program.start_transaction(plan, [])
    assert not program.cancel_transaction()
    assert native.must(program.advance_transaction()) is None
    for call in (
        lambda: native.Degradation("shrink"),
        lambda: native.Publication.capture(1, kind="anchor"),
        lambda: native.Publication.finish(1, tier="disk"),
        lambda: session.open([], []),
        lambda: native.PreparedPrompt(TOKENS[:0]),
        lambda: native.Publication.admission(
            native.must(program.candidates(native.PreparedPrompt(TOKENS), []))[0], native.PreparedPrompt(TOKENS[:9]), 64
        ),
        lambda: program.candidates(native.PreparedPrompt(TOKENS), [(1, "borrow")]),
        lambda: program.prove_backfill((-1, 0), (0, 0), [], []),
    ):
        with pytest.raises(ValueError, match=r"."):
            call()
    assert isinstance(program.candidates(native.PreparedPrompt(TOKENS), [(1, "retain")]), native.Refusal)
    assert isinstance(session.assess(1), native.Refusal)
    assert result.sequence is not None
    proof = native.must(program.prove_backfill((256, 0), (64, 0), [result.sequence], []))
    assert proof.holds(program)
    assert (proof.pages_needed, proof.pages_total, proof.lanes_needed) == (5, 8, 2)
    native.must(program.close_sequence(result.sequence))
    assert not proof.holds(program)
