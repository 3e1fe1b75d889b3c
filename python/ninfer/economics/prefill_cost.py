"""What computing a stretch of a prompt costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ninfer.economics.transfer_cost import Numbers


def attention_pairs(base: npt.ArrayLike, suffix: npt.ArrayLike) -> Numbers:
    """Pairs of a query and a key it sees: `suffix` tokens behind `base` ones, B·S + S(S + 1)/2, elementwise."""
    behind = np.asarray(base, dtype=np.float64)
    computed = np.asarray(suffix, dtype=np.float64)
    return behind * computed + computed * (computed + 1) / 2


@dataclass(frozen=True)
class PrefillCost:
    """pass_ns: of each forward pass, however short; token_ns: of each token; pair_ns: of each attention pair."""

    pass_ns: float
    token_ns: float
    pair_ns: float

    def of(self, base: npt.ArrayLike, suffix: npt.ArrayLike) -> Numbers:
        """Nanoseconds of `suffix` tokens behind `base` ones, elementwise; 0 if there is nothing to compute.

        One pass is counted: how many there are depends on the engine's chunks and is the same for every choice, but for
        `split`.
        """
        computed = np.asarray(suffix, dtype=np.float64)
        work = self.pass_ns + computed * self.token_ns + attention_pairs(base, suffix) * self.pair_ns
        return np.where(computed > 0, work, 0.0)

    def split(self, passes: int) -> float:
        """Of that many more passes over the same tokens, because a capture ends one early."""
        return self.pass_ns * passes
