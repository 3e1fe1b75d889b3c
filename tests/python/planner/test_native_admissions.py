"""Catalog, planner and the real program together: what is reused, what survives pressure, and that both agree."""

from __future__ import annotations

import random

import numpy as np
import pytest

from ninfer import native
from ninfer.resources.checkpoint_kind import CheckpointKind
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.publication import CaptureRoom
from ninfer.resources.removal_reason import RemovalReason
from ninfer.resources.retention import RetentionClass
from ninfer.resources.reuse_key import ReuseKey
from tests.fixtures.planned_admissions import Admitted, PlannedAdmissions
from tests.fixtures.seed import SEED
from tests.fixtures.smallest_models import VOCABULARY, smallest_hybrid, smallest_llama

AMPLE = {"kv_pages": 400, "checkpoint_slots": 100}
TEXT = np.random.default_rng(3).integers(1, VOCABULARY, 2000).astype(np.int32).tolist()
S = ReuseKey(session="s")


@pytest.fixture(scope="module")
def model() -> native.ModelSource:
    return smallest_hybrid()


def requests_on(
    model: native.ModelSource, sizes: dict[str, int], most_captures: int = 12, **options: int
) -> PlannedAdmissions:
    fields = native.ProgramOptions()
    fixed = {"threads": 1, "max_context": 4096, "max_concurrency": 3, "max_unit_rows": 128}
    fixed |= {"valid_tokens": VOCABULARY, "host_bytes": 1 << 22} | sizes
    fields.cpu_isa = native.supported_cpu_isas()[-1]
    for name, value in fixed.items():
        setattr(fields, name, value)
    return PlannedAdmissions(native.Program(model, "bf16", fields), ContextCacheOptions(**options), most_captures)


@pytest.fixture(scope="module")
def llama() -> native.ModelSource:
    return smallest_llama()


@pytest.fixture
def requests(model: native.ModelSource) -> PlannedAdmissions:
    return requests_on(model, AMPLE)


def prompt(tokens: list[int], salt: str = "") -> native.PreparedPrompt:
    return native.PreparedPrompt(np.array(tokens, dtype=np.int32), salt=salt)


def logits(requests: PlannedAdmissions, request: Admitted) -> list[float]:
    """After the prompt; the request is discarded."""
    requests.compute(request, request.prompt.size - 1)
    native.must(
        requests.program.abort(native.must(requests.program.finish_prefill(request.sequence, native.Sampler())))
    )
    found = requests.program.last_logits(0)
    requests.discard(request)
    return found


def cold_logits(requests: PlannedAdmissions, tokens: list[int]) -> list[float]:
    return logits(requests, requests.admit(prompt(tokens), ReuseKey(reads=False, publishes=False), len(tokens)))


@pytest.mark.parametrize("branches", [False, True])
def test_a_warm_start_computes_what_a_cold_one_does(requests: PlannedAdmissions, branches: bool) -> None:
    requests.keep(TEXT[:700], S, [300])
    tokens = TEXT[:400] + TEXT[900:1000] if branches else TEXT[:800]
    expected = cold_logits(requests, tokens)
    warm = requests.admit(prompt(tokens), S, len(tokens))
    assert warm.frontier == (300 if branches else 700)
    assert logits(requests, warm) == expected
    requests.manager.check_invariants()
    requests.program.check_invariants()


@pytest.mark.parametrize("shared", [9, 40, 70, 299, 400])
def test_without_recurrent_layers_any_prefix_is_reused(llama: native.ModelSource, shared: int) -> None:
    requests = requests_on(llama, AMPLE)
    requests.keep(TEXT[:400], S)
    tokens = TEXT[:shared] + TEXT[900:1000]
    expected = cold_logits(requests, tokens)
    warm = requests.admit(prompt(tokens), S, len(tokens))
    assert warm.frontier == (shared if shared >= 16 else 0), "16 tokens more or less are not looked for"
    assert logits(requests, warm) == expected
    again = requests.admit(prompt(TEXT[:400]), ReuseKey(), 400)
    # What goes on from the end takes the conversation over, and here it was discarded with it.
    assert again.frontier == (399 if shared < 400 else 0), "a branch leaves the conversation alone"
    requests.discard(again)
    requests.manager.check_invariants()


@pytest.mark.parametrize("tokens", [128, 150, 1200])
@pytest.mark.parametrize("family", ["hybrid", "llama"])
def test_a_request_that_computes_nothing_costs_nobody_a_conversation(
    model: native.ModelSource, llama: native.ModelSource, family: str, tokens: int
) -> None:
    """Consumed, or taken over and kept: the next request finds it again, and so does an eviction."""
    requests = requests_on(model if family == "hybrid" else llama, AMPLE)
    requests.keep(TEXT[:tokens], S)
    kinds = [slot.kinds for slot in requests.manager.slots()]
    for _ in range(3):
        warm = requests.admit(prompt(TEXT[: tokens + 100]), S, tokens + 100)
        assert warm.claim.takes_owner and warm.frontier == tokens
        requests.discard(warm)
        requests.manager.check_invariants()
        assert [slot.kinds for slot in requests.manager.slots()] == kinds
    assert requests.keep(TEXT[: tokens + 100], S) == tokens
    requests.program.check_invariants()


def test_an_endpoint_far_above_stays_as_an_anchor(requests: PlannedAdmissions) -> None:
    requests.keep(TEXT[:1200], S)
    assert requests.keep(TEXT[:1300], S) == 1200
    (slot,) = requests.manager.slots()
    assert slot.kinds == (CheckpointKind.LONG_ANCHOR, CheckpointKind.SESSION_ENDPOINT)
    assert requests.keep(TEXT[:1250] + TEXT[1500:1600], S) == 1200, "a sibling of the second turn"
    assert len(requests.manager.slots()) == 2, "it left the conversation alone"
    assert [slot.retention for slot in requests.manager.slots()] == [
        RetentionClass.DISPOSABLE,
        RetentionClass.LIVE_SESSION,
    ]


def test_under_pressure_the_source_of_the_request_survives(model: native.ModelSource) -> None:
    requests = requests_on(model, {"kv_pages": 28, "checkpoint_slots": 8})
    requests.keep(TEXT[:300], ReuseKey(session="other"))
    requests.keep(TEXT[500:800], S)
    assert requests.keep(TEXT[500:1300], S) == 300
    assert requests.manager.statistics().removed == {"pressure": 1, "consumed": 1}
    requests.manager.check_invariants()


def test_without_slots_for_states_requests_still_run(model: native.ModelSource) -> None:
    requests = requests_on(model, {"kv_pages": 40, "checkpoint_slots": 1})
    for start in range(0, 600, 200):
        assert requests.keep(TEXT[start : start + 100], ReuseKey()) in (0, 100)
        requests.manager.check_invariants()


class RandomTenants:
    """Prompts from a small tree, three lanes, stores that are too small, a catalog that is too small."""

    def __init__(self, requests: PlannedAdmissions, numbers: random.Random) -> None:
        self.requests = requests
        self.numbers = numbers
        self.running: list[Admitted] = []
        self.reused = 0

    def step(self) -> None:
        actions = [self.admit, self.admit, self.advance, self.advance, self.end]
        self.numbers.choice(actions)()
        self.requests.manager.check_invariants()

    def admit(self) -> None:
        parts = [self.numbers.choice((0, 100, 200)) for _ in range(self.numbers.randint(1, 6))]
        tokens = [token for at in parts for token in TEXT[at : at + 70]]
        key = self.numbers.choice([ReuseKey(), S, ReuseKey(session="t"), ReuseKey(salt="x")])
        one = prompt(tokens, key.salt)
        self.make_cell(one, key)
        admitted = self.requests.try_admit(one, key, len(tokens) + 8)
        if isinstance(admitted, Admitted):
            self.reused += admitted.frontier
            self.running.append(admitted)

    def make_cell(self, one: native.PreparedPrompt, key: ReuseKey) -> None:
        manager = self.requests.manager
        if manager.has_free_cell():
            return
        victim = next(iter(manager.cell_victims(manager.shortlist(one, key))), None)
        if victim is not None and not isinstance(self.requests.program.release_owner(victim), native.Refusal):
            manager.note_released(victim, RemovalReason.CATALOG_FULL)

    def advance(self) -> None:
        if not self.running:
            return
        request = self.numbers.choice(self.running)
        self.requests.compute(request, self.numbers.randint(0, request.prompt.size - 1))
        computed = native.must(self.requests.program.sequence(request.sequence)).computed
        room = self.requests.manager.capture_room(request.claim, shared=False)
        if computed > request.frontier and room is CaptureRoom.FREE:
            self.requests.try_capture(request)

    def end(self) -> None:
        if not self.running:
            return
        request = self.running.pop(self.numbers.randrange(len(self.running)))
        if self.numbers.random() < 0.2 or not self.requests.try_finish(request):
            self.requests.discard(request)


@pytest.mark.parametrize("seed", [SEED, SEED + 1])
@pytest.mark.parametrize("family", ["hybrid", "llama"])
def test_random_tenants(model: native.ModelSource, llama: native.ModelSource, family: str, seed: int) -> None:
    sizes = {"kv_pages": 24, "checkpoint_slots": 5}
    source = model if family == "hybrid" else llama
    requests = requests_on(source, sizes, 3, max_private_continuations=4, max_long_anchors_per_continuation=2)
    tenants = RandomTenants(requests, random.Random(seed))
    for _ in range(400):
        tenants.step()
    assert tenants.reused > 0
    while tenants.running:
        tenants.end()
    requests.program.check_invariants()
    found = requests.manager.statistics()
    assert found.removed.get("pressure", 0) + found.removed.get("catalog_full", 0) > 0, found
    assert (found.private_active, found.private_claimed, found.edges) == (0, 0, 0)
