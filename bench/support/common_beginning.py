"""1,000 conversations that begin with one system prompt, of a model without recurrent layers: every one is a source."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.support.engine_admissions import EngineAdmissions
from ninfer import native
from ninfer.frontend.prompt_boundaries import MessageBoundary, PromptBoundaries
from ninfer.resources.context_cache_options import ContextCacheOptions
from ninfer.resources.reuse_key import ReuseKey
from tests.fixtures.planned_admissions import PlannedAdmissions
from tests.fixtures.smallest_models import VOCABULARY, smallest_llama

SYSTEM_TOKENS, OWN_TOKENS = 2000, 40


class CommonBeginning:
    """The kept conversations, and the opener that admits one more of them."""

    def __init__(self, conversations: int, options: native.ProgramOptions) -> None:
        self._numbers = np.random.default_rng(2)
        program = native.Program(smallest_llama(), "bf16", options)
        requests = PlannedAdmissions(program, ContextCacheOptions(max_private_continuations=conversations + 8))
        self._system = self._tokens(SYSTEM_TOKENS)
        for number in range(conversations):
            reused = requests.keep(self._conversation(), ReuseKey(session=str(number)))
            assert number == 0 or reused >= SYSTEM_TOKENS, reused
        requests.manager.check_invariants()
        self._engine = EngineAdmissions(program, requests.manager)

    def microseconds(self) -> tuple[float, float]:
        """As EngineAdmissions: how long one admission takes, and how much of it is the thread's own processor time."""
        prompt = native.PreparedPrompt(self._conversation())
        boundaries = PromptBoundaries(
            messages=(MessageBoundary(SYSTEM_TOKENS, 1),),
            leading_end=SYSTEM_TOKENS,
            turn_closure=prompt.size - 3,
            response_replay=prompt.size - 2,
        )
        return self._engine.microseconds(prompt, boundaries)

    def _conversation(self) -> NDArray[np.int32]:
        return np.concatenate([self._system, self._tokens(OWN_TOKENS)])

    def _tokens(self, count: int) -> NDArray[np.int32]:
        return self._numbers.integers(1, VOCABULARY, count).astype(np.int32)
