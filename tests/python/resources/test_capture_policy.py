"""Where a prefill stops to keep something (C6, C7, C9, C10, D-24, D-25)."""

from __future__ import annotations

from ninfer.frontend.prompt_boundaries import MessageBoundary, PromptBoundaries
from ninfer.resources.capture_policy import (
    Boundaries,
    CaptureCandidate,
    CaptureFacts,
    CaptureSituation,
    capture_candidates,
    grid_points,
)
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.evidence import Evidence

SHARED, ANCHOR = CheckpointKind.SHARED_STABLE_PREFIX, CheckpointKind.LONG_ANCHOR
CLOSURE, REPLAY = CheckpointKind.TURN_CLOSURE, CheckpointKind.RESPONSE_REPLAY
NOTHING_KNOWN = CaptureFacts()


def conversation(*starts: int, **fields: object) -> PromptBoundaries:
    """Message i + 1 begins at starts[i]; the prompt ends 100 tokens after the last."""
    messages = tuple(MessageBoundary(at, number + 1) for number, at in enumerate(starts))
    return PromptBoundaries(messages, **fields)  # type: ignore[arg-type]  # fields are PromptBoundaries' own


def captures(
    boundaries: Boundaries,
    prompt_tokens: int,
    base: int = 0,
    surviving: frozenset[int] = frozenset(),
    facts: CaptureFacts = NOTHING_KNOWN,
    options: ContextCacheOptions | None = None,
) -> list[CaptureCandidate]:
    situation = CaptureSituation(prompt_tokens, base, surviving)
    return list(capture_candidates(boundaries, situation, facts, options or ContextCacheOptions()))


def kinds(found: list[CaptureCandidate]) -> list[tuple[int, CheckpointKind]]:
    return [(one.frontier, one.kind) for one in found]


def test_a_first_request_keeps_structure_messages_and_the_turn() -> None:
    boundaries = conversation(300, 400, 500, tools_end=200, leading_end=300, turn_closure=600, response_replay=620)
    assert captures(boundaries, 630) == [
        CaptureCandidate(200, SHARED, False, Evidence.ENGINE_STRUCTURAL, ANCHOR),
        CaptureCandidate(300, SHARED, False, Evidence.ENGINE_STRUCTURAL, ANCHOR),
        CaptureCandidate(400, ANCHOR, True),
        CaptureCandidate(500, ANCHOR, True),
        CaptureCandidate(600, CLOSURE, True),
        CaptureCandidate(620, REPLAY, True),
    ]


def test_what_is_shared_already_is_not_kept_again_not_even_as_an_anchor() -> None:
    boundaries = conversation(300, 400, leading_end=300, turn_closure=500)
    facts = CaptureFacts(already_shared=frozenset({300}))
    assert kinds(captures(boundaries, 600, facts=facts)) == [(400, ANCHOR), (500, CLOSURE)]


def test_the_turn_is_kept_even_where_something_is_shared() -> None:
    facts = CaptureFacts(already_shared=frozenset({400}))
    boundaries = conversation(300, turn_closure=400, markers=(400,))
    assert kinds(captures(boundaries, 500, facts=facts)) == [(300, ANCHOR), (400, CLOSURE)]


def test_a_shared_one_remembers_what_the_continuation_needs_there() -> None:
    boundaries = conversation(300, leading_end=300, turn_closure=400, response_replay=430, markers=(400,))
    assert captures(boundaries, 440)[1] == CaptureCandidate(400, SHARED, False, Evidence.EXPLICIT_BOUNDARY, CLOSURE)


def test_without_shared_prefixes_structure_is_kept_as_anchors() -> None:
    boundaries = conversation(300, leading_end=300, turn_closure=400)
    options = ContextCacheOptions(max_shared_prefixes=0)
    assert kinds(captures(boundaries, 500, options=options)) == [(300, ANCHOR), (400, CLOSURE)]


def test_nothing_at_or_below_the_base() -> None:
    boundaries = conversation(300, 400, 500, leading_end=300, turn_closure=600, response_replay=700)
    assert kinds(captures(boundaries, 710, base=500)) == [(600, CLOSURE), (700, REPLAY)]


def test_nothing_close_above_what_is_kept() -> None:
    boundaries = conversation(100, 116, 117, 134, turn_closure=150)
    assert [one.frontier for one in captures(boundaries, 200)] == [100, 117, 134]
    assert [one.frontier for one in captures(boundaries, 200, base=90, surviving=frozenset({90}))] == [116, 134]
    assert [one.frontier for one in captures(boundaries, 200, base=90)] == [100, 117, 134], "the base does not stay"


def test_the_opener_of_the_answer_counts_for_who_goes_on() -> None:
    """17 tokens of 44 would be computed again, though the replay point lies only 14 above what is kept."""
    boundaries = conversation(leading_end=27, turn_closure=41, response_replay=41)
    at_base = {"base": 27, "surviving": frozenset({27}), "facts": CaptureFacts(already_shared=frozenset({27}))}
    assert [one.frontier for one in captures(boundaries, 44, **at_base)] == [41]  # type: ignore[arg-type]
    assert [one.frontier for one in captures(boundaries, 43, **at_base)] == []  # type: ignore[arg-type]


def test_a_request_may_have_no_structural_candidates_and_keeps_its_own() -> None:
    boundaries = conversation(300, 400, tools_end=200, leading_end=300, turn_closure=500, markers=(350,))
    situation = CaptureSituation(600, 0, structural=False)
    found = capture_candidates(boundaries, situation, NOTHING_KNOWN, ContextCacheOptions())
    assert kinds(list(found)) == [(300, ANCHOR), (350, SHARED), (400, ANCHOR), (500, CLOSURE)]
    few = capture_candidates(boundaries, situation, NOTHING_KNOWN, ContextCacheOptions(max_shared_prefixes=0))
    assert [one.frontier for one in few] == [300, 350, 400, 500] and all(one.own for one in few)


def test_what_is_kept_at_the_base_is_shared_from_there() -> None:
    """D-23: before the first unit. An exact shared owner is enough; what lies below the base is not gone back to."""
    boundaries = conversation(tools_end=200, leading_end=300, turn_closure=310, response_replay=400)
    found = captures(boundaries, 410, base=300, surviving=frozenset({300}))
    assert found == [
        CaptureCandidate(300, SHARED, False, Evidence.ENGINE_STRUCTURAL),
        CaptureCandidate(400, REPLAY, True),
    ]
    marked = conversation(turn_closure=300, markers=(300,))
    assert captures(marked, 410, base=300) == [CaptureCandidate(300, SHARED, False, Evidence.EXPLICIT_BOUNDARY)]
    shared = CaptureFacts(already_shared=frozenset({300}))
    assert kinds(captures(boundaries, 410, base=300, surviving=frozenset({300}), facts=shared)) == [(400, REPLAY)]
    none = ContextCacheOptions(max_shared_prefixes=0)
    assert kinds(captures(boundaries, 410, base=300, surviving=frozenset({300}), options=none)) == [(400, REPLAY)]


def test_an_endpoint_above_the_base_becomes_an_anchor_in_prefill() -> None:
    """D-24: at the base its own image stays, below it is dropped."""
    boundaries = conversation(2000, turn_closure=2900, response_replay=2950)
    facts = CaptureFacts(endpoint=1500)
    above = captures(boundaries, 3000, base=300, facts=facts)
    assert above[0] == CaptureCandidate(1500, ANCHOR, True, was_endpoint=True)
    for base in (1500, 1600):
        assert 1500 not in [one.frontier for one in captures(boundaries, 3000, base=base, facts=facts)]


def test_empty_boundaries_at_either_end_are_no_anchors() -> None:
    """What begins the first message is as good as nothing, and what follows the last one belongs to the turn."""
    boundaries = conversation(1, 100, 300, turn_closure=300, response_replay=350)
    assert kinds(captures(boundaries, 360)) == [(100, ANCHOR), (300, CLOSURE), (350, REPLAY)]


def test_markers_are_never_left_out() -> None:
    boundaries = conversation(100, turn_closure=120, markers=(105, 110))
    assert [one.frontier for one in captures(boundaries, 200)] == [100, 105, 110]


def test_the_last_message_boundaries_become_anchors() -> None:
    boundaries = conversation(*range(100, 2100, 100), turn_closure=2200)
    found = captures(boundaries, 2300, options=ContextCacheOptions(auto_long_anchors=3))
    assert kinds(found) == [(1800, ANCHOR), (1900, ANCHOR), (2000, ANCHOR), (2200, CLOSURE)]
    limited = ContextCacheOptions(auto_long_anchors=3, max_long_anchors_per_continuation=1)
    assert kinds(captures(boundaries, 2300, options=limited)) == [(2000, ANCHOR), (2200, CLOSURE)]
    none = ContextCacheOptions(auto_long_anchors=0)
    assert kinds(captures(boundaries, 2300, options=none)) == [(2200, CLOSURE)]


def test_rounds_of_an_open_turn_push_no_anchor_out() -> None:
    boundaries = conversation(*range(100, 2100, 100), turn_closure=500, response_replay=2150)
    assert kinds(captures(boundaries, 2160)) == [
        (100, ANCHOR),
        (200, ANCHOR),
        (300, ANCHOR),
        (400, ANCHOR),
        (500, CLOSURE),
        (2150, REPLAY),
    ]


def test_a_raw_prompt_is_kept_before_its_last_token() -> None:
    raw = PromptBoundaries(raw=True)
    assert captures(raw, 1602) == [CaptureCandidate(1601, ANCHOR, True)]
    assert captures(raw, 1602, base=1590, surviving=frozenset({1590})) == [CaptureCandidate(1601, ANCHOR, True)]
    assert captures(raw, 17) == [CaptureCandidate(16, ANCHOR, True)]
    assert captures(raw, 16) == [], "computing 16 tokens again is what D-33 tolerates"


def test_without_recurrent_layers_only_shared_prefixes_are_kept() -> None:
    boundaries = conversation(300, 400, leading_end=300, turn_closure=500, response_replay=600)
    situation = CaptureSituation(700, 0, has_state=False)
    found = capture_candidates(boundaries, situation, NOTHING_KNOWN, ContextCacheOptions())
    assert kinds(list(found)) == [(300, SHARED)]
    raw = capture_candidates(PromptBoundaries(raw=True), situation, NOTHING_KNOWN, ContextCacheOptions())
    assert raw == ()


def test_whoever_publishes_nothing_keeps_nothing() -> None:
    boundaries = conversation(300, leading_end=300, turn_closure=500)
    silent = CaptureSituation(700, 0, publishes=False)
    assert capture_candidates(boundaries, silent, NOTHING_KNOWN, ContextCacheOptions()) == ()
    assert captures(boundaries, 700, options=ContextCacheOptions(enabled=False)) == []


def test_grid_points_are_absolute_and_at_most_eight() -> None:
    assert grid_points(256) == ()
    assert grid_points(257) == (256,)
    assert grid_points(8 * 256 + 1) == tuple(range(256, 2049, 256))
    assert grid_points(9 * 256 + 1) == (512, 1024, 1536, 2048)
    assert len(grid_points(240_000)) <= 8


def test_grid_points_are_shared_once_two_have_named_them() -> None:
    facts = CaptureFacts(repeated=frozenset({512}))
    found = captures(PromptBoundaries(raw=True), 600, facts=facts)
    assert found == [
        CaptureCandidate(512, SHARED, False, Evidence.ENGINE_OBSERVED),
        CaptureCandidate(599, ANCHOR, True),
    ]
